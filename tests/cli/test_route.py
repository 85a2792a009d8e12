"""`lrp4rag route` and `lrp4rag policy`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.guard.policy import Policy

ROWS = [
    {
        "id": "a",
        "passages": ["Leave is 2 weeks."],
        "response": "Leave is 2 weeks.",
        "labels": [],
        "generator": "x",
    },
    {
        "id": "b",
        "passages": ["Leave is 2 weeks."],
        "response": "Leave is 2 weeks [4].",
        "labels": [{"start": 0, "end": 5}],
        "generator": "y",
    },
    {
        "id": "c",
        "passages": [
            {"text": "Leave is 12 weeks.", "title": "Policy", "version": "2.8"},
            {"text": "Leave is 16 weeks.", "title": "Policy", "version": "3.1"},
        ],
        "response": "Leave is 16 weeks.",
        "labels": [],
        "generator": "x",
    },
]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"question": "How long is leave?", **row}) + "\n" for row in ROWS))
    return path


def run(*arguments: object):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.mark.usefixtures("default_reader")
def test_each_answer_has_a_decision_and_its_reasons(answers: Path, tmp_path: Path) -> None:
    """With the real reader, and another policy beside."""
    other = tmp_path / "other.yaml"
    other.write_text("name: lenient\nrules: {fabricated: null, conflict: null}\n")
    found = run("route", answers, "--simulate", other, "--json")
    assert found.exit_code == 0, found.output
    *rows, last = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["id"], row["action"]) for row in rows] == [
        ("a", "serve"),
        ("b", "withhold"),
        ("c", "disclose"),
    ]
    assert rows[1]["reason"] == "fabricated citation"
    assert rows[0]["policy"] == Policy().hash
    assert "16 weeks" in rows[2]["message"]
    outcomes = last["outcomes"]
    assert set(outcomes) == {"balanced", "lenient", "detector alone", "serve all"}
    assert outcomes["balanced"]["served"]["part"] == 2
    assert outcomes["balanced"]["hallucinated"] | {"interval": None} == {
        "value": 0.0, "interval": None, "part": 0, "count": 2
    }  # fmt: skip
    assert outcomes["serve all"]["hallucinated"]["part"] == 1
    assert set(outcomes["balanced"]["by_generator"]) == {"x", "y"}


def test_an_answer_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q?", "passages": ["p"]}\n')
    found = run("route", path)
    assert found.exit_code == 2
    assert "no response" in found.output


def test_what_is_shown_is_a_policy_again(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(run("policy", "show").stdout)
    assert Policy.model_validate(yaml.safe_load(path.read_text())) == Policy()
    assert Policy().hash in run("policy", "check", path).stdout
    path.write_text("name: x\nbands: 3\n")
    found = run("policy", "check", path)
    assert found.exit_code == 2
    assert "line 2" in found.output
