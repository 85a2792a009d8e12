"""What a reader brings: that all detectors judge the same answers, and that figures are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchmarks import readers
from benchmarks.elsewhere.sets import PAIRS
from benchmarks.kinds.judging import EVIDENCE, MINIMAL, RAGTRUTH, Score
from lrp4rag import Detector
from lrp4rag.classifiers.card import Range
from lrp4rag.reader import Reader
from tests.benchmarks.test_elsewhere import pairs_of
from tests.benchmarks.test_elsewhere import write as write_sets
from tests.benchmarks.test_kinds import BASES, EDITS
from tests.cli.plain_detector import plain_detector
from tests.training.labelled import examples, write_jsonl


def score(name: str, label: int, probability: float, twin: str | None = None) -> Score:
    return Score(
        id=name,
        set="pairs",
        kind="x",
        label=label,
        probability=probability,
        source=name[0],
        twin=twin,
        seconds=2.0,
    )


def test_faulty_copies_are_ranked_against_the_answer_they_were_made_of() -> None:
    scores = [
        score("a0", 0, 0.5),
        score("a1", 1, 0.6, "a0"),
        score("a2", 1, 0.5, "a0"),
        score("b0", 0, 0.7),
        score("b1", 1, 0.6, "b0"),
        score("b2", 1, 0.9, "b0"),
    ]
    found = readers.measured(scores, 0.65)
    assert found["responses"] == 6
    assert found["seconds"] == 2.0
    assert found["ranked"]["value"] == (1 + 0.5 + 0 + 1) / 4
    assert found["balanced_accuracy"]["value"] == (1 / 2 + 1 / 4) / 2
    assert found["auroc"]["value"] == (1 + 0.5 + 1 + 2) / 2 / 4


def test_without_copies_nothing_is_ranked() -> None:
    assert "ranked" not in readers.measured([score("a0", 0, 0.1), score("b0", 1, 0.2)], 0.5)


def test_sources_lie_evenly_and_are_whole() -> None:
    found = readers.some_responses(examples(40), 10)
    assert len(found) < 40
    chosen = {one.source for one in found}
    assert found == [one for one in examples(40) if one.source in chosen]
    assert readers.some_responses(examples(4), 100) == examples(4)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = write_sets(tmp_path / "data", {PAIRS: [row for base in BASES for row in pairs_of(base)]})
    (folder / PAIRS / "evidence.jsonl").write_text(json.dumps({"base": "b1", "edits": EDITS}) + "\n")
    return folder


def test_all_detectors_judge_the_same_answers_once(
    data: Path, tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = plain_detector(tiny_reader)
    card = model.card.model_copy(update={"domain": {"passages": Range(low=1, high=6)}})
    detector = Detector(replace(model, card=card), tiny_reader, name="tiny")
    monkeypatch.setattr(readers.Detector, "load", lambda *given, **more: detector)
    labelled = write_jsonl(examples(6), tmp_path / "labelled.jsonl")
    kept = [score(one.id, int(bool(one.labels)), 0.5) for one in examples(6)]
    oof = tmp_path / "oof.jsonl"
    oof.write_text("".join(one.model_copy(update={"set": RAGTRUTH}).model_dump_json() + "\n" for one in kept))
    monkeypatch.setattr(readers, "OUT_OF_FOLD", oof)
    arguments = ["--json", "--data", data, "--ragtruth", labelled, "--cache", tmp_path / "cache"]
    arguments += ["--detector", f"one={tmp_path}", "--detector", "default", "--detector", "text"]
    found = run(*arguments)
    one, bundled, text = found["detectors"]
    assert [one["name"], bundled["name"]] == ["one", "default"]
    assert set(text["sets"]) == {MINIMAL, EVIDENCE}, "it learned from RAGTruth"
    assert one["sets"][MINIMAL]["responses"] == 10
    assert one["sets"][EVIDENCE]["responses"] == 8
    assert one["sets"][RAGTRUTH]["responses"] == 6
    assert one["sets"][MINIMAL] | {"seconds": 0} == bundled["sets"][MINIMAL] | {"seconds": 0}
    assert bundled["sets"][RAGTRUTH]["auroc"]["value"] == 0.5  # what the file says, which judged nothing
    monkeypatch.setattr(detector, "judge_many", None)
    assert run(*arguments) == found

    oof.write_text("")
    result = CliRunner().invoke(readers.main, [str(each) for each in arguments])
    assert result.exit_code == 2
    assert "lacks responses" in result.output


@pytest.mark.parametrize("options", [["/a/folder"], ["=folder"], ["one=a", "one=b"]])
def test_each_detector_has_a_name_of_its_own(options: list[str]) -> None:
    with pytest.raises(click.BadParameter, match="a name of its own"):
        readers.named(options)


def run(*arguments: Any) -> dict[str, Any]:
    result = CliRunner().invoke(readers.main, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
