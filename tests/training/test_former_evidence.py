"""A former detector beside a new one, on what neither learned from."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from lrp4rag.classifiers import Features
from lrp4rag.report.cards import model_card, render_card
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.former_evidence import Former, former_evidence
from lrp4rag.training.rows import Rows
from lrp4rag.training.train import VectorRecipe, train
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples, extraction


def outcome_of(probabilities) -> Outcome:
    return Outcome(np.array([probabilities]), np.array([probabilities]) >= 0.5)


def test_both_are_measured_on_rows_that_the_former_did_not_learn_from(detector, tmp_path) -> None:
    """The former was trained on sources 0 to 39."""
    given = examples(30, first=30)
    rows = Rows(extraction(given, tmp_path / "s").store, tuple(given))
    opposite = outcome_of([0.1 if one.hallucinated else 0.9 for one in given])
    found = former_evidence(Former("default", detector), rows, opposite, resamples=50)
    assert (found.responses, found.hallucinated, found.sources, found.left_out) == (20, 10, 20, 10)
    assert found.sha256 == detector.card.sha256
    part = rows.select(range(10, 30))
    probabilities = detector.predict_proba(part.relevances)
    right = (probabilities >= detector.card.threshold) == part.labels
    assert found.before["accuracy"].value == pytest.approx(right.mean())
    assert found.now["accuracy"].value == found.now["auroc"].value == 0
    for name, one in found.difference.items():
        if one.value is not None:
            assert one.value == pytest.approx(found.now[name].value - found.before[name].value)
    assert found.difference["auroc"].high < 0


def test_equal_verdicts_differ_by_nothing(detector, tmp_path) -> None:
    given = examples(20, first=100)
    rows = Rows(extraction(given, tmp_path / "s").store, tuple(given))
    same = outcome_of(detector.predict_proba(rows.relevances))
    same = replace(same, flagged=same.probabilities >= detector.card.threshold)
    found = former_evidence(Former("default", detector), rows, same, resamples=50)
    assert {(one.value, one.low, one.high) for one in found.difference.values()} == {(0.0, 0.0, 0.0)}


def test_what_was_all_learned_from_is_refused(detector) -> None:
    with pytest.raises(InputError, match="it learned from those of 20 of 20"):
        Former("default", detector).unseen(examples(20))
    with pytest.raises(InputError, match="faithful and hallucinated responses are needed"):
        Former("default", detector).unseen(examples(1, first=100))


def test_the_card_tells_both_and_whether_it_helped(detector, tmp_path) -> None:
    given = examples(30, first=30)
    made = extraction(given, tmp_path / "s")
    hostile = Former("old\x1b|card", detector)
    found = train(
        Corpus.of(given), made, reads=VectorRecipe(Features(length=20)), former=hostile, resamples=20
    )
    assert found.card.evidence.former.left_out == 10
    assert found.card.evidence.former.now["auroc"].value <= 1
    console = Console(width=120, record=True)
    console.print(render_card(found.card))
    text = " ".join(console.export_text().split())
    assert "20 responses of 20 sources, 10 hallucinated; 10 left out" in text
    assert re.search(r"AUROC [+-]0\.\d+ \[.*?\]: (better|worse|cannot be told apart)", text)
    assert "\x1b" not in text
    page = model_card(found.card, "new")
    assert "the detector before" in page
    assert "| **this detector** |" in page
    assert "\x1b" not in page
    assert model_card(detector.card, "x").count("the detector before") == 0
