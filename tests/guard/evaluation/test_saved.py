"""Baselines as files: read as they were written, and refused by name where they are none."""

from __future__ import annotations

import json

import pytest

from lrp4rag.example import Example, Label
from lrp4rag.guard.evaluation.regression_gate import FORMAT, read_saved, written
from lrp4rag.guard.evaluation.result import Result, judged_hash
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from tests.guard.evaluation.results import results


def record(**more):
    rows = [one.model_dump(mode="json") for one in results(3)]
    return {"format": FORMAT, "made_with": {"detector": "x"}, "seen": 0, "examples": rows, **more}


def test_a_file_has_a_line_for_each_example_and_reads_back(tmp_path) -> None:
    path = tmp_path / "last.json"
    path.write_text(written(record(nan=float("nan"))))
    assert sum('"id"' in line for line in path.read_text().splitlines()) == 3
    assert json.loads(path.read_text())["nan"] is None
    found = read_saved(path)
    assert list(found.examples) == results(3)
    assert found.made_with == {"detector": "x"}


def broken(**more):
    given = record()
    given["examples"][1] |= more
    return json.dumps(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not JSON", "not a baseline"),
        ("[]", "no JSON object"),
        ('{"probability": 0.3}', "lrp4rag evaluate DATA --out"),
        (json.dumps(record(format=99)), "field 'format'"),
        (json.dumps(record(examples=[])), "field 'examples'"),
        (json.dumps(record(examples=record()["examples"] * 2)), "'0' stands there twice"),
        (broken(probability=1.5), "field 'examples[1].probability'"),
        (broken(probability=None), "has a probability"),
        (broken(flagged=None), "is flagged or not"),
        (broken(spans=[[5, 500]]), "lies outside the response"),
        (broken(length=10**12), "field 'examples[1].length'"),
        (broken(action="explode"), "field 'examples[1].action'"),
        (json.dumps(record()).replace("0.9", "NaN"), "NaN is no number"),
    ],
)
def test_what_is_no_baseline_is_refused(text, message, tmp_path) -> None:
    path = tmp_path / "last.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_saved(path)
    assert message in str(error.value)
    assert "last.json" in str(error.value)


def test_a_missing_file_is_named_with_what_to_do(tmp_path) -> None:
    with pytest.raises(InputError, match=r"none\.json: .*make one"):
        read_saved(tmp_path / "none.json")


def test_everything_that_is_looked_at_is_hashed_and_labels_are_not() -> None:
    def hashed(**more):
        given = {"question": "Q?", "passages": ["One.", "Two."], "response": "R.", "id": "a"}
        return judged_hash(Example(**{**given, **more}))

    same = hashed()
    assert hashed(id="b", labels=(Label(0, 1),), source="s") == same
    for other in (
        {"question": "W?"},
        {"passages": ["One.", "Three."]},
        {"passages": [Source("One.", expires="2024-01-01"), "Two."]},
        {"response": "S."},
        {"generator": "g"},
        {"template": "{question} {context}"},
    ):
        assert hashed(**other) != same


def test_what_could_not_be_read_is_withheld_and_says_why() -> None:
    example = Example("Q?", ["P."], "R.", labels=(), id="a", generator="g")
    found = Result.of(example, None, assess(Policy(), example, None), "too long")
    assert (found.outcome, found.why, found.action, found.flagged) == ("failed", "too long", "withhold", None)
    assert found.right is None
    assert not found.row.served
