"""One baseline by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems import registry
from lrp4rag.experiments.systems.baseline import BestClassifier, Fitted
from lrp4rag.experiments.systems.comparison.folds import sample_of
from lrp4rag.experiments.systems.comparison.single import cross_validate, judge_others
from lrp4rag.experiments.systems.facts import Facts
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.experiments.systems.scoring import Score, ScoredSpan
from lrp4rag.training.rows import Rows
from tests.experiments.systems.comparison.test_compare import BASELINES, coin_flips
from tests.training.labelled import examples
from tests.training.test_localisation import stored


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return stored(tmp_path_factory.mktemp("store"), count=40)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "BASELINES", BASELINES)


def test_marks_become_spans_of_the_response(rows: Rows, tmp_path: Path) -> None:
    found = cross_validate("first-word", rows, sample_of(rows, 20), Resources(tmp_path), 20)
    assert len(found.scores) == len(rows)
    assert found.answered == 1
    for example, score in zip(found.examples, found.scores, strict=True):
        assert score.suspects[0].start == 0
        assert example.response[: score.suspects[0].end].split()[0] == example.response.split()[0]
    assert found.lines["g1"] is not None


def test_a_slow_one_is_judged_on_the_sample(rows: Rows, tmp_path: Path) -> None:
    sample = sample_of(rows, 30, ("g1",))
    found = cross_validate("coin", rows, sample, Resources(tmp_path), 20)
    assert [one.id for one in found.examples] == [rows.examples[k].id for k in sample]
    assert set(found.responses) == {"g1", "all"}
    assert all(score.suspects is None for score in found.scores)
    assert found.answered < 1
    assert not all(score.answered for score in found.scores)


def test_others_are_judged_by_all_rows(rows: Rows) -> None:
    others = examples(6, first=300)
    scores = judge_others(BASELINES["length"], rows, sample_of(rows, 20), others, Resources())
    assert len(scores) == 6
    lengths = [len(one.response.split()) for one in others]
    assert len({score.probability for score in scores}) == len(set(lengths))
    with pytest.raises(InputError, match="has question and passages of the store"):
        judge_others(BASELINES["length"], rows, sample_of(rows, 20), [rows.examples[0]], Resources())
    assert np.isfinite([score.probability for score in scores]).all()


def test_a_slow_one_learns_from_the_sample_with_models_that_are_trained_on_all(rows: Rows) -> None:
    sample, asked = sample_of(rows, 30, ("g1",)), []

    class Noting:
        facts = BASELINES["coin"].facts

        def fit(self, learned: Rows, resources: Resources) -> Fitted:
            assert resources.training_rows is not None
            asked.append((len(learned), len(resources.training_rows)))
            return BASELINES["coin"].fit(learned, resources)

    judge_others(Noting(), rows, sample, examples(2, first=300), Resources())
    assert asked == [(len(sample), len(rows))]
    assert len(sample) < len(rows)
    left = next(k for k in range(len(rows)) if rows.groups[k] not in rows.groups[sample])
    with pytest.raises(InputError, match="has question and passages of the store"):
        judge_others(Noting(), rows, sample, [rows.examples[left]], Resources())


def test_signals_of_another_reader_are_refused(rows: Rows, tmp_path: Path) -> None:
    needy = BestClassifier(
        Facts("Needy", "", "reader's states", "labels", "none", needs=("signals",)), coin_flips
    )
    resources = Resources(tmp_path)
    resources.once("reader", lambda: SimpleNamespace(identity=SimpleNamespace(digest="another")))
    with pytest.raises(InputError, match="the store was read by tiny, and smollm2-135m is another reader"):
        judge_others(needy, rows, sample_of(rows, 20), examples(2, first=300), resources)


@dataclass(frozen=True)
class Parts:
    """The first four characters are two marked parts, then two others follow."""

    facts = Facts("Parts", "", "text", "labels", "none")

    def fit(self, rows: Rows, resources: Resources) -> Parts:
        return self

    def score(self, rows: Rows, resources: Resources) -> list[Score]:
        parts = (ScoredSpan(0, 2, 0.6, True), ScoredSpan(3, 4, 0.9, True), ScoredSpan(5, 6, 0.2, False))
        return [Score(0.5, True, (*parts, ScoredSpan(7, 8, 0.7, True))) for _ in rows.examples]


def test_suspects_of_others_are_spans_too(rows: Rows) -> None:
    """Not the parts as a baseline cuts them."""
    one = replace(examples(1, first=300)[0], response="ab c d e f", labels=())
    (score,) = judge_others(Parts(), rows, sample_of(rows, 20), [one], Resources())
    assert score.suspects == (ScoredSpan(0, 4, 0.9, True), ScoredSpan(7, 8, 0.7, True))
