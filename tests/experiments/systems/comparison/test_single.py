"""One baseline by itself."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.systems import registry
from experiments.systems.baseline import BestClassifier
from experiments.systems.comparison.folds import sample_of
from experiments.systems.comparison.single import cross_validate, judge_others
from experiments.systems.resources import Resources
from experiments.systems.scoring import Score, ScoredSpan
from lrp4rag.util.errors import InputError
from tests.experiments.systems.comparison.test_compare import BASELINES, coin_flips, facts_named
from tests.experiments.tokens.stored import stored
from tests.training.labelled import examples

SEEN = "has question and passages of the store"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("store"), count=40)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(registry, "BASELINES", BASELINES)


def test_marks_become_spans_of_the_response(rows, tmp_path):
    found = cross_validate("first-word", rows, sample_of(rows, 20), Resources(tmp_path), 20)
    assert len(found.scores) == len(rows)
    assert found.answered == 1
    for example, score in zip(found.examples, found.scores, strict=True):
        assert score.suspects[0].start == 0
        assert example.response[: score.suspects[0].end].split()[0] == example.response.split()[0]
    assert found.lines["g1"] is not None


def test_a_slow_one_is_judged_on_the_sample(rows, tmp_path):
    sample = sample_of(rows, 30, ("g1",))
    found = cross_validate("coin", rows, sample, Resources(tmp_path), 20)
    assert [one.id for one in found.examples] == [rows.examples[k].id for k in sample]
    assert set(found.responses) == {"g1", "all"}
    assert all(score.suspects is None for score in found.scores)
    assert found.answered == sum(score.answered for score in found.scores) / len(sample) < 1


def test_others_are_judged_by_all_rows(rows):
    others = examples(6, first=300)
    scores = judge_others(BASELINES["length"], rows, sample_of(rows, 20), others, Resources())
    assert len(scores) == 6
    lengths = {len(one.response.split()) for one in others}
    assert len({score.probability for score in scores}) == len(lengths)
    with pytest.raises(InputError, match=SEEN):
        judge_others(BASELINES["length"], rows, sample_of(rows, 20), [rows.examples[0]], Resources())


def test_a_slow_one_learns_from_the_sample_with_models_that_are_trained_on_all(rows):
    sample, asked = sample_of(rows, 30, ("g1",)), []

    def fit(learned, resources):
        asked.append((len(learned), len(resources.training_rows)))
        return BASELINES["coin"].fit(learned, resources)

    noting = SimpleNamespace(facts=BASELINES["coin"].facts, fit=fit)
    judge_others(noting, rows, sample, examples(2, first=300), Resources())
    assert asked == [(len(sample), len(rows))]
    assert len(sample) < len(rows)
    left = next(k for k in range(len(rows)) if rows.groups[k] not in rows.groups[sample])
    with pytest.raises(InputError, match=SEEN):
        judge_others(noting, rows, sample, [rows.examples[left]], Resources())


def test_signals_of_another_reader_are_refused(rows, tmp_path):
    needy, resources = BestClassifier(facts_named("N", needs=("signals",)), coin_flips), Resources(tmp_path)
    resources.once("reader", lambda: SimpleNamespace(identity=SimpleNamespace(digest="another")))
    with pytest.raises(InputError, match="the store was read by tiny, and smollm2-135m is another reader"):
        judge_others(needy, rows, sample_of(rows, 20), examples(2, first=300), resources)


def test_suspects_of_others_are_spans_too(rows):
    """Not the parts as a baseline cuts them: the first two make one."""
    scored = [(0, 2, 0.6, True), (3, 4, 0.9, True), (5, 6, 0.2, False), (7, 8, 0.7, True)]
    parts = Score(0.5, True, tuple(ScoredSpan(*one) for one in scored))
    fitted = SimpleNamespace(score=lambda rows, _: [parts for _ in rows.examples])
    baseline = SimpleNamespace(facts=facts_named("Parts"), fit=lambda *_: fitted)
    one = replace(examples(1, first=300)[0], response="ab c d e f", labels=())
    (score,) = judge_others(baseline, rows, sample_of(rows, 20), [one], Resources())
    assert score.suspects == (ScoredSpan(0, 4, 0.9, True), ScoredSpan(7, 8, 0.7, True))
