"""Verdicts among passages of other questions: that what is counted is what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import distractors
from lrp4rag import Detector
from lrp4rag.classifiers.card import Range
from lrp4rag.reader import Reader
from tests.benchmarks.test_elsewhere import pairs_of
from tests.cli.plain_detector import plain_detector
from tests.training.labelled import examples, write_jsonl

HALLS = [
    [f"The hall of {name} was built in {1900 + k}.", f"{name} has a market."] for k, name in enumerate("AB")
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        row | {"passages": [*halls, *row["passages"]]}
        for k, halls in enumerate(HALLS)
        for row in pairs_of(f"Brel {k}")
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def detector(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Detector:
    """One that is quick, and learned from prompts of at most six passages."""
    model = plain_detector(tiny_reader)
    card = model.card.model_copy(update={"domain": {"passages": Range(low=1, high=6)}})
    found = Detector(replace(model, card=card), tiny_reader, name="tiny")
    monkeypatch.setattr(distractors.Detector, "load", lambda *given, **more: found)
    monkeypatch.setattr(distractors, "apart", lambda *given: 1)
    return found


def run(*arguments: Any) -> dict[str, Any]:
    result = CliRunner().invoke(distractors.main, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_answers_are_judged_among_passages_of_other_questions(
    data: Path, detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = write_jsonl(examples(8), tmp_path / "more.jsonl")
    arguments = ["--data", data, "--passages", passages, "--counts", "0,5", "--cache", tmp_path / "cells"]
    found = run(*arguments, "--json")
    assert [row["distractors"] for row in found["rows"]] == [0, 5]
    assert all(row["responses"] == len(found["answers"]) / 2 == 10 for row in found["rows"])
    for answer in found["answers"]:
        assert len(answer["own"]) == 4
        assert (answer["read"] is None) == (answer["distractors"] == 0)
        assert answer["own"] == sorted(answer["own"])
        if answer["distractors"] == 0:
            assert all(answer["supporting_read"])
        if answer["label"]:
            assert answer["supporting_read"] == []
    # A second run takes what the first one measured.
    monkeypatch.setattr(distractors, "judged", None)
    assert run(*arguments, "--json")["answers"] == found["answers"]


def test_a_fold_s_detector_judges_what_it_did_not_learn_from(data: Path, tmp_path: Path) -> None:
    every, beside = distractors.examples_of(str(data), tmp_path / "none")
    assert len({one.source for one in every}) == 2
    held = tmp_path / "sources.json"
    held.write_text(json.dumps([every[-1].source]))
    some, beside = distractors.examples_of(str(data), held)
    assert {one.source for one in some} == {every[-1].source}
    assert beside is distractors.asking_others
    everyday, _ = distractors.examples_of("everyday", tmp_path / "none")
    assert len({one.source for one in everyday}) == 550


def test_the_passages_of_a_question_keep_their_order_and_others_are_not_its_own(data: Path) -> None:
    read = [item.example for item in distractors.read_pairs(data)]
    mixture = distractors.Mixture(read, ["Other one.", "Other two.", "Other three."], seed=1)
    mixed, numbers = mixture.mixed(read[0], 4)
    assert [mixed.passages[k] for k in numbers] == list(read[0].passages)
    others = [passage for k, passage in enumerate(mixed.passages) if k not in numbers]
    assert not set(others) & set(read[0].passages)
    assert len(set(others)) == 4
    assert mixture.mixed(read[1], 4)[0].passages == mixed.passages
