"""The page of the red team's results is made of its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.redteam import page
from lrp4rag.util.errors import InputError

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "redteam"
BEFORE, AFTER, REASONS = (
    json.loads((FOLDER / f"{name}.json").read_text()) for name in ("before", "after", "reasons")
)


def test_the_page_is_what_its_files_make() -> None:
    assert (FOLDER / "README.md").read_text() == page(BEFORE, AFTER, REASONS)


def test_every_failure_has_a_reason_and_no_other_case_has() -> None:
    failed = {one["id"] for one in AFTER["results"] if not one["passed"]}
    assert set(REASONS) == failed
    first, *others = REASONS
    with pytest.raises(InputError, match=f"reasons are of other failures: {first}"):
        page(BEFORE, AFTER, {name: REASONS[name] for name in others})


def test_runs_of_other_cases_are_not_compared() -> None:
    with pytest.raises(InputError, match="other cases"):
        page(BEFORE | {"cases": "0"}, AFTER, REASONS)
