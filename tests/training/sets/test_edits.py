"""The sets that come with the package, and edits of passages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lrp4rag.example import Example
from lrp4rag.training import sets
from lrp4rag.training.sets import SETS, load_set
from lrp4rag.training.sets.edits import Edit, Replacement, edited, load_edited
from lrp4rag.util.errors import InputError

ANSWER = Example("How long?", ("It lasts 2 hours. It is free.",), "It lasts 2 hours.", id="q.0", source="q")


def edit(old: str, new: str, kind: str = "number", **spans: list[str]) -> Edit:
    replacement = Replacement(passage=0, old=old, new=new)
    return Edit(kind=kind, replacements=[replacement], wrong=list(spans), spans=spans)


def test_the_passages_are_edited_and_the_answer_stays() -> None:
    wrong = edited(ANSWER, "0", edit("2 hours", "3 hours", **{"0": ["2 hours"]}), Path("f"), 1)
    assert wrong.passages == ("It lasts 3 hours. It is free.",)
    assert wrong.response == ANSWER.response
    assert [(label.start, label.end, label.kind) for label in wrong.labels or ()] == [(9, 16, "number")]
    right = edited(ANSWER, "0", edit("free", "cheap"), Path("f"), 1)
    assert right.labels == ()
    exchanged = edited(
        ANSWER, "0", edit("2 hours", "3 hours", "exchanged", **{"0": ["2 hours"]}), Path("f"), 1
    )
    assert (exchanged.labels or ())[0].kind == "misattributed"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (edit("4 hours", "3 hours"), "edits.replacements.old"),
        (edit("2 hours", "3 hours", **{"0": ["5 hours"]}), "edits.spans"),
        (edit("2 hours", "3 hours", **{"0": []}), "edits.spans"),
    ],
)
def test_an_edit_of_what_is_not_there_is_refused(given: Edit, field: str) -> None:
    with pytest.raises(InputError) as raised:
        edited(ANSWER, "0", given, Path("edits.jsonl"), 7)
    assert (raised.value.line, raised.value.field) == (7, field)


def test_a_file_names_its_questions(tmp_path: Path) -> None:
    line = {"base": "q", "edits": [edit("2 hours", "3 hours", **{"0": ["2 hours"]}).model_dump()]}
    path = tmp_path / "edits.jsonl"
    path.write_text(json.dumps(line) + "\n" + json.dumps({**line, "base": "other"}))
    found = load_edited(path, {"q": {"0": ANSWER}})
    assert next(found).id == "q.0~evidence-number"
    with pytest.raises(InputError, match="no question 'other'"):
        next(found)


def test_every_edit_of_the_package_fits_its_question(
    everyday: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "load_examples", lambda _: everyday)
    assert "everyday-evidence" in SETS
    examples = load_set(Path("everyday-evidence"))
    assert len({example.id for example in examples}) == len(examples)
    originals = {example.id: example for example in everyday}
    kinds = Counter(label.kind for example in examples for label in (example.labels or ())[:1])
    assert {"number", "name", "date or unit", "negation", "condition", "misattributed", "removed"} == set(
        kinds
    )
    assert min(kinds.values()) > 800
    for example in examples:
        original = originals[example.id.partition("~")[0]]
        assert example.response == original.response
        assert example.source == original.source
        assert example.passages != original.passages
