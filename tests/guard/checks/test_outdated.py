"""Answers from documents that do not hold now, and answers that only look so."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.outdated import Outdated
from lrp4rag.source import Source

NOW = datetime(2025, 6, 1, tzinfo=UTC)
OLD = Source("Partners get 12 weeks. Ask your manager.", title="Leave", version="2", effective="2020-01-01")
NEW = Source("Partners get 16 weeks. Ask your manager.", title="Leave", version="3", effective="2024-01-01")
BANNED = Source("Solvent S-2 may be used with gloves.", title="Hazards", version="2016")
TODAY = Source("Solvent S-2 is banned. Use soap.", title="Hazards", version="2022")
EXPIRED = Source("One visitor is allowed at a time.", title="Visits", expires="2021-09-30")
FUTURE = Source("Cleaning is paid for twice a year.", title="Bonus", effective="2060-01-01")


def found(response: str, *sources: Source, question: str = "What holds?") -> list[Finding]:
    return Outdated()(CheckInput(question, sources, response, now=NOW))


@pytest.mark.parametrize(
    ("response", "sources", "because"),
    [
        ("Partners get 12 weeks.", (OLD, NEW), "superseded"),
        ("Partners get twelve weeks.", (NEW, OLD), "superseded"),
        ("Yes, solvent S-2 may be used with gloves.", (BANNED, TODAY), "superseded"),
        ("One visitor is allowed at a time.", (EXPIRED, TODAY), "expired"),
        ("Cleaning is paid for twice a year.", (FUTURE, TODAY), "not yet effective"),
    ],
)
def test_an_answer_rests_on_what_does_not_hold(response: str, sources, because: str) -> None:
    (one,) = found(response, *sources)
    assert (one.kind, one.details["because"]) == ("outdated", because)
    assert (one.start, one.end) == (0, len(response))


@pytest.mark.parametrize(
    "response",
    [
        "Partners get 16 weeks.",
        "Ask your manager.",
        "Partners get 20 weeks.",
        "The documents do not say.",
        "",
    ],
)
def test_an_answer_that_rests_on_another_or_on_none(response: str) -> None:
    assert found(response, OLD, NEW) == []


def test_a_question_about_then_has_what_held_then() -> None:
    assert (
        found("Partners got 12 weeks.", OLD, NEW, question="How many weeks did partners get in 2021?") == []
    )


def test_without_dates_and_versions_nothing_is_outdated() -> None:
    assert found("Partners get 12 weeks.", Source(OLD.text), Source(NEW.text)) == []


def test_halves_of_characters_are_no_error() -> None:
    assert found("Partners get 12 weeks \ud800.", OLD, NEW)
