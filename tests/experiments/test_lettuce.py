"""LettuceDetect over epochs: what is judged, which epoch is taken, and beside what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import lettuce
from experiments.cache import Cache
from experiments.lettuce import Lettuce, evaluate
from experiments.pages import write_results
from experiments.systems.resources import Resources
from experiments.systems.scores import SystemScores, write_scores
from experiments.systems.scoring import PartScores
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import Marking
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.stored import stored


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return stored(tmp_path_factory.mktemp("lettuce") / "store")


@pytest.fixture(scope="module")
def compared(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison whose model marks nothing."""
    folder = tmp_path_factory.mktemp("compared")
    count, tokens = len(rows), tokens_of(rows, {})
    nothing = np.zeros(len(tokens.flags), dtype=bool)
    scores = SystemScores(
        Outcome(np.full((1, count), 0.5), np.zeros((1, count), dtype=bool), ("",)),
        Marking(np.full(len(tokens.flags), 0.1), nothing, nothing),
        np.ones(count, dtype=bool),
        (),
    )
    ids = tuple(example.id for example in rows.examples)
    write_scores(folder / "scores", "lettucedetect", {}, ids, scores)
    return folder


@pytest.fixture
def learned(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Instead of a training: after the second of three epochs the model knows each annotated word, else none.
    The names of what it learned from."""
    annotated = {example.response: example.labels or () for example in rows.examples}
    names: list[str] = []

    class Classifier:
        longest = 4096

        def __init__(self, _name: str, knows: Any, _tokenizer: Any) -> None:
            self.knows = knows

        def __call__(self, windows: Any) -> list[PartScores]:
            found = []
            for window in windows:
                spans = [match.span() for match in re.finditer(r"\S+", window.text)]
                inside = [
                    any(one.start < end and start < one.end for one in annotated[window.text])
                    for start, end in spans
                ]
                scores = np.where(np.array(inside) & self.knows, 0.9, 0.2)
                found.append(PartScores(np.array(spans), scores))
            return found

    def train(examples: Any, _resources: Any, training: Any, after_epoch: Any) -> None:
        names.extend(example.id for example in examples)
        for number in range(1, training.epochs + 1):
            after_epoch(number, number == 2, None)

    monkeypatch.setattr(lettuce, "TokenClassifier", Classifier)
    monkeypatch.setattr(lettuce, "train_classifier", train)
    return names


def test_the_best_epoch_is_chosen_on_sources_that_are_set_aside(
    rows: Rows, compared: Path, learned: list[str], tmp_path: Path
) -> None:
    found = evaluate(rows, 2, 3, compared, Resources(Cache(tmp_path)), 20)
    assert isinstance(found, Lettuce)
    split = folds_of(tokens_of(rows, {}), ONCE)[1]
    judged = {rows.examples[k].id for k in split.test}
    assert (found.judged, found.learned) == (len(judged), len(learned))
    assert not judged & set(learned)
    assert found.learned + found.aside + found.judged == len(rows)
    assert [one.number for one in found.epochs] == [1, 2, 3]
    assert found.best.number == 2
    assert found.best.chosen_by == found.best.from_half.tokens["f1"].value == 1.0
    assert found.best.from_half.spans["f1"].value > 0.9
    assert found.epochs[0].from_half.spans["f1"].value == 0.0
    assert 0.2 < found.best.threshold <= 0.9
    assert found.former.spans["f1"].value == 0.0

    more = {"protocol": ONCE.words, "resamples": 20}
    page, *figures, record = write_results(tmp_path / "out", "lettuce", found, "x", **more)
    assert {path.suffix for path in figures} == {".png", ".svg"}
    text = page.read_text(encoding="utf-8")
    assert "| 2 (best) | 1.000 |" in text
    assert "By the paper's rule epoch 2 is taken: span F1 0.9" in text
    assert record.name == "results.json"


def test_another_fold_and_scores_of_other_rows_are_refused(
    rows: Rows, compared: Path, learned: list[str], tmp_path: Path
) -> None:
    resources = Resources(Cache(tmp_path))
    with pytest.raises(InputError, match="there are folds 1 to 5, and no 6"):
        evaluate(rows, 6, 1, compared, resources, 20)
    with pytest.raises(InputError, match="not of the store's responses"):
        evaluate(rows.select(np.arange(len(rows) - 2)), 1, 1, compared, resources, 20)
    assert learned == []
