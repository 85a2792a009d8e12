"""Runs as JSON and side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lrp4rag.guard.redteam.record import Record, changes, read, record
from lrp4rag.guard.redteam.tables import below, change_lines, rows
from lrp4rag.guard.redteam.targets import run
from lrp4rag.util.errors import InputError
from tests.guard.redteam.conftest import Scripted, answered, case

CASES = [
    case("a"),
    case("b", kind="tables"),
    case("c", kind="tables", expected=["serve", "mark"]),
    case("d", kind="my own"),
]


def made(**answers) -> Record:
    target = Scripted(**answers)
    return record(list(run(CASES, target)), target, 1.25)


FIRST = made(a=answered(), b=answered("serve"), c=answered("serve"))


def test_what_is_not_judged_has_not_passed() -> None:
    by = {one.id: one for one in FIRST.results}
    assert [one.passed for one in FIRST.results] == [True, False, True, False]
    assert by["d"].action is None
    assert by["d"].error == "too long"
    assert by["a"].findings == ["It has 31."]
    assert FIRST.versions == {"package": "1", "policy": "p"}


def test_kinds_have_shares_with_wilson_s_intervals() -> None:
    tables = FIRST.kinds["tables"]
    assert (tables.every.passed, tables.every.cases) == (1, 2)
    assert (tables.every.low, tables.every.high) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert (tables.harmful.passed, tables.harmless.passed) == (0, 1)
    assert FIRST.kinds["all"].every.passed == 2
    assert FIRST.kinds["my own"].harmless.share is None
    assert [cells[0] for cells in rows(FIRST)] == [
        "conflicting documents", "attack: tables", "my own", "all"
    ]  # fmt: skip
    assert rows(FIRST)[1] == ("attack: tables", "1 of 2", "0.50 [0.09, 0.91]", "0 of 1", "1 of 1")
    assert below(FIRST, 0.5) == ["my own: 0.00"]


def test_two_runs_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    path.write_text(FIRST.model_dump_json())
    last = read(path)
    assert last == FIRST
    assert [line.plain for line in change_lines(changes(last, FIRST))] == ["nothing has changed"]
    other = Scripted(a=answered("serve"), b=answered(), c=answered("mark"), e=answered())
    other.versions = {"package": "2", "policy": "p"}
    cases = [*CASES[:3], case("e"), case("d", why="another", kind="my own")]
    found = changes(last, record(list(run(cases, other)), other, 1.0))
    assert [(one.id, one.what) for one in found.broken] == [("a", "withhold then, serve now")]
    assert [one.id for one in found.mended] == ["b"]
    assert [(one.id, one.what) for one in found.other] == [("c", "serve then, mark now")]
    assert [(one.id, one.what) for one in found.cases] == [("d", "is another case now"), ("e", "is new")]
    assert [(one.id, one.what) for one in found.versions] == [("package", "1 then, 2 now")]
    assert change_lines(found)[0].plain == "1 fail now:"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: run["results"].append(run["results"][0]), "field 'results': .*'a' stands there twice"),
        (lambda run: run["results"][0].update(action="all is well"), r"results\[0\]\.action"),
    ],
    ids=["id", "action"],
)
def test_a_run_that_was_changed_is_told(tmp_path: Path, change: Callable[[Any], None], words: str) -> None:
    path, last = tmp_path / "last.json", FIRST.model_dump(mode="json")
    change(last)
    path.write_text(json.dumps(last))
    with pytest.raises(InputError, match=words):
        read(path)


def test_no_name_of_a_version_makes_a_line_of_its_own() -> None:
    last = FIRST.model_copy(update={"versions": {**FIRST.versions, "a\nnothing has changed": "b\nc"}})
    lines = [line.plain for line in change_lines(changes(last, FIRST))]
    assert "\n" not in "".join(lines)
    assert lines[0] == "another a nothing has changed: b c then, unknown now"


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"target": NaN}'])
def test_what_is_no_run_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "last.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not results of 'lrp4rag redteam'") as error:
        read(path)
    assert error.value.path == path
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "missing.json")
