"""Refusals by whether the passages have what they say to be missing."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks import refusals
from lrp4rag.example import Example, Label
from tests.training.labelled import write_jsonl

QUESTION = "What does the course cost, and is there parking?"
PASSAGES = ["The course starts on 16 September. The course fee is 90 euros."]
RIGHT, FALSE = "The documents do not mention parking.", "The course fee is not mentioned."


def test_each_sentence_counts_once_on_the_side_of_its_label(tmp_path: Path) -> None:
    both = f"{RIGHT} {FALSE}"
    label = Label(len(RIGHT) + 1, len(both), "refusal")
    examples = [
        Example(QUESTION, PASSAGES, response, id=str(k), source="one", labels=labels)
        for k, (response, labels) in enumerate([(RIGHT, ()), (both, (label,)), ("It costs 90 euros.", ())])
    ]
    path = write_jsonl(examples, tmp_path / "answers.jsonl")
    result = CliRunner().invoke(refusals.main, ["--data", str(path), "--json"], catch_exceptions=False)
    assert json.loads(result.stdout)["sentences"] == {
        "right": {"there": 0, "absent": 1, "undecided": 0},
        "false": {"there": 1, "absent": 0, "undecided": 0},
    }
