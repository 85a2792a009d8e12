"""Runs as JSON, and as a table."""

from __future__ import annotations

import pytest

from lrp4rag.guard.redteam.record import Record, record
from lrp4rag.guard.redteam.tables import below, rows
from lrp4rag.guard.redteam.targets import run
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
