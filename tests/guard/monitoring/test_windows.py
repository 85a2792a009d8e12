"""What is read of a log, and what is not."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.monitoring.windows import Period, Window, moment, period, preceding, read_window
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.guard.monitoring.logs import EARLY, LATE, NOW, records, spread, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


def read(path: Path, period: Period = LATE) -> Window:
    with AuditLog.open(path, read_only=True) as log:
        return read_window(log, period)


def test_a_window_holds_its_answers_and_checks(path: Path) -> None:
    early, late = records(3, 1), records(4, 2)
    late[1] |= {"kind": "retrieval"}
    late[2] |= {"kind": "sentence"}
    late[3] |= {"kind": "answer", "sentences": {"serve": 2}, "more": 1}
    write(path, [*spread(EARLY, early), *spread(LATE, late)])
    before, after = read(path, EARLY), read(path)
    assert [one.id for one in before.answers] == ["1-0", "1-1", "1-2"]
    assert [one.id for one in after.answers] == ["2-0", "2-3"]
    assert [one.id for one in after.retrievals] == ["2-1"]
    assert before.answers[0].probability == early[0]["probability"]
    assert EARLY.start < before.answers[0].time < EARLY.end
    assert before.versions("detector") == {"d1": 3}
    assert before.versions("reader") == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"probability": 1.5},
        {"probability": "0.5"},
        {"action": "shred"},
        {"faithfulness": True},
        {"characters": -1},
        {"topic": "x" * 201},
        {"reason": None},
    ],
    ids=str,
)
def test_what_cannot_be_is_counted_and_no_answer(path: Path, wrong: dict[str, object]) -> None:
    good, bad = records(2, 1)
    write(path, spread(LATE, [good, bad | wrong]))
    found = read(path)
    assert (len(found.answers), found.unreadable) == (1, 1)


@pytest.mark.parametrize("score", [1.7e308, -1.7e308, 1e300])
def test_a_score_of_no_scale_is_none_and_the_answer_counts(path: Path, score: float) -> None:
    (one,) = records(1, 1)
    write(path, spread(LATE, [one | {"retrieval_score": score}]))
    found = read(path)
    assert [one.retrieval_score for one in found.answers] == [None]
    assert found.answers[0].probability == one["probability"]


def test_no_name_in_a_record_does_harm(path: Path) -> None:
    (record,) = records(1, 1)
    write(path, spread(LATE, [record | {"self": 1, "args": [], "__init__": 2}]))
    assert len(read(path).answers) == 1


def test_records_of_an_older_version_have_less(path: Path) -> None:
    old = {"id": "a", "kind": "answer", "action": "withhold", "reason": "unlike training data"}
    write(path, spread(LATE, [old]))
    (one,) = read(path).answers
    assert one.unlike
    assert not one.judged
    assert one.probability is one.topic is one.characters is None


def test_a_changed_entry_ends_the_reading(path: Path) -> None:
    write(path, spread(LATE, records(2, 1)))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE audit_entries SET record = replace(record, 'serve', 'mark')")
    connection.close()
    with pytest.raises(LRP4RAGError, match="lrp4rag audit verify"):
        read(path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("7d", NOW - timedelta(days=7)),
        ("24h", NOW - timedelta(hours=24)),
        (" 2w ", NOW - timedelta(weeks=2)),
        ("0d", NOW),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:30", datetime(2026, 11, 1, 10, 30, tzinfo=UTC)),
        ("2026-11-01 10:30Z", datetime(2026, 11, 1, 10, 30, tzinfo=UTC)),
        ("2026-11-01T10:30+02:00", datetime(2026, 11, 1, 8, 30, tzinfo=UTC)),
    ],
)
def test_a_moment(given: str, expected: datetime) -> None:
    assert moment(given, NOW) == expected


@pytest.mark.parametrize(
    "given",
    ["", "7", "7 days", "yesterday", "-7d", "7D", "99999w", "2026-13-01", "12:30", "\x1b[31m", "1e3d"],
)
def test_what_is_no_moment_says_what_is_one(given: str) -> None:
    with pytest.raises(InputError, match="is no time") as error:
        moment(given, NOW, "since")
    assert error.value.field == "since"
    assert "\x1b" not in str(error.value)


def test_what_is_yet_to_come_is_no_moment() -> None:
    with pytest.raises(InputError, match="is yet to come"):
        moment("2027-01-01", NOW)


def test_a_period_ends_now_or_where_it_is_told() -> None:
    start = NOW - timedelta(days=7)
    assert period("7d", NOW) == Period(start, NOW)
    assert period("14d", NOW, end=start) == Period(NOW - timedelta(days=14), start)
    assert period("14d..10d", NOW, end=start).length == timedelta(days=4)
    assert str(period("2026-11-01..2026-11-08", NOW)) == "2026-11-01 00:00 to 2026-11-08 00:00"


@pytest.mark.parametrize("given", ["0d", "2026-11-08..2026-11-01", "7d..7d"])
def test_a_period_holds_something(given: str) -> None:
    with pytest.raises(InputError, match=r"it ends at") as error:
        period(given, NOW, field="baseline")
    assert error.value.field == "baseline"


def test_what_precedes_a_period() -> None:
    late = period("7d", NOW)
    assert preceding(late, 4) == Period(NOW - timedelta(days=35), late.start)
    with pytest.raises(InputError, match="name where it begins"):
        preceding(period("0100-01-01", NOW), 4)
