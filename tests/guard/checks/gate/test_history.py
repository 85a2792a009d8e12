"""Which time a question asks for."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from lrp4rag.guard.checks.gate.history import requested_time

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
QUESTIONS = [
    json.loads(line) for line in (Path(__file__).parent / "questions.jsonl").read_text().splitlines()
]
"""Written by hand; those of another time have the day from which it is, where there is one."""
ANOTHER_TIME = [(one["question"], one["from"]) for one in QUESTIONS if "from" in one]
NOW_IS_MEANT = [one["question"] for one in QUESTIONS if "from" not in one]


@pytest.mark.parametrize(("question", "first"), ANOTHER_TIME)
def test_a_question_asks_for_another_time(question: str, first: str | None) -> None:
    asked = requested_time(question, NOW, UTC)
    assert asked is not None
    start = asked.period.start
    assert (start and start.date().isoformat()) == first
    assert asked.words


@pytest.mark.parametrize("question", NOW_IS_MEANT)
def test_a_question_asks_for_the_present(question: str) -> None:
    assert requested_time(question, NOW, UTC) is None


def test_a_year_lasts_to_its_end() -> None:
    asked = requested_time("What was the limit in 2022?", NOW, UTC)
    assert asked is not None
    assert asked.period.end == datetime(2023, 1, 1, tzinfo=UTC)


def test_a_question_about_then_and_now_asks_for_both() -> None:
    asked = requested_time("What was the limit in 2022, and what is it now?", NOW, UTC)
    assert asked is not None
    assert asked.period.start == datetime(2022, 1, 1, tzinfo=UTC)
    assert asked.period.end == NOW


def test_days_are_those_of_the_time_zone() -> None:
    zone = timezone(timedelta(hours=9))
    asked = requested_time("What was the limit on 2022-03-05?", NOW, zone)
    assert asked is not None
    assert asked.period.start == datetime(2022, 3, 4, 15, tzinfo=UTC)
    late = NOW.replace(hour=23)  # 2 July there
    asked = requested_time("What was the limit yesterday?", late, zone)
    assert asked is not None
    assert asked.period.start == datetime(2024, 7, 1, tzinfo=zone)


@pytest.mark.parametrize(
    "question",
    [
        *("999 years ago", "999 months ago", "999 weeks ago", "as of 0000", "as of 9999-12-31"),
        *("in 2023-02-30", "before 1001", "in the 9990s", "before 0001-01-01"),
    ],
)
@pytest.mark.parametrize("now", [NOW, datetime(9999, 12, 30, tzinfo=UTC)])
def test_times_at_the_ends_of_the_calendar_raise_nothing(question: str, now: datetime) -> None:
    requested_time(question, now, UTC)
