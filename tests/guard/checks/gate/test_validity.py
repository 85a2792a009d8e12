"""Dates in ISO 8601, and when a passage is valid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.checks.gate.validity import Period, read_date, validity_of
from lrp4rag.source import Source


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: float = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC) + timedelta(seconds=second)


@pytest.mark.parametrize(
    ("written", "start", "end"),
    [
        ("2024-06-30", at(2024, 6, 30), at(2024, 7, 1)),
        (" 2024-06-30\n", at(2024, 6, 30), at(2024, 7, 1)),
        ("20240630", at(2024, 6, 30), at(2024, 7, 1)),
        ("2024-12-31", at(2024, 12, 31), at(2025, 1, 1)),
        ("2024", at(2024, 1, 1), at(2025, 1, 1)),
        ("2024-12", at(2024, 12, 1), at(2025, 1, 1)),
        ("2024-W26", at(2024, 6, 24), at(2024, 7, 1)),
        ("2024-W26-7", at(2024, 6, 30), at(2024, 7, 1)),
        ("9999-12-31", at(9999, 12, 31), None),
        ("9999", at(9999, 1, 1), None),
    ],
)
def test_a_date_names_a_period(written: str, start: datetime, end: datetime | None) -> None:
    assert read_date(written, UTC) == Period(start, end)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-06-30T23:59:59Z", at(2024, 6, 30, 23, 59, 59)),
        ("2024-06-30T23:59:59+02:00", at(2024, 6, 30, 21, 59, 59)),
        ("2024-06-30T23:59:59-0530", at(2024, 7, 1, 5, 29, 59)),
        ("2024-06-30 23:59:59+00", at(2024, 6, 30, 23, 59, 59)),
        ("2024-06-30T23:59", at(2024, 6, 30, 23, 59)),
        ("20240630T235959Z", at(2024, 6, 30, 23, 59, 59)),
        ("2024-06-30T23:59:59.5Z", at(2024, 6, 30, 23, 59, 59.5)),
        ("2024-06-30T24:00:00Z", at(2024, 7, 1)),
    ],
)
def test_a_date_with_a_time_is_a_moment(written: str, moment: datetime) -> None:
    assert read_date(written, UTC) == Period(moment, moment)


def test_a_date_without_a_time_zone_is_of_the_one_given() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    day = read_date("2024-03-31", berlin)  # clocks go forward: 23 hours
    assert day is not None
    assert day.start == at(2024, 3, 30, 23)
    assert day.end == at(2024, 3, 31, 22)
    moment = read_date("2024-06-30T12:00", berlin)
    assert moment is not None
    assert moment.start == at(2024, 6, 30, 10)


@pytest.mark.parametrize(
    "written",
    [
        *("30.06.2024", "06/30/2024", "30 June 2024", "June 2024", "2024/06/30", "2024-6-30", "24-06-30"),
        *("2024-02-30", "2023-02-29", "2024-13", "2024-00", "0000", "2024-06-31", "202405", "1719784799"),
        *("2024-06-30T25:00", "2024-06-30T24:01", "2024-06-30T12:00+25:00", "2024-06-30x12:00"),
        *("\u0662\u0660\u0662\u0664", "\uff12\uff10\uff12\uff14-01-01", "2024-06-30; x", "0" * 200_000),
        *("9999-12-31T24:00", "-2024", "+2024-06-30", "2024-06-30/2024-07-30", "2024-06-30T12:00 CEST"),
        *("2024-06-30T", "\ud800", "tomorrow"),
    ],
    ids=lambda written: repr(written[:24]),
)
def test_what_cannot_be_read_is_none(written: str) -> None:
    assert read_date(written, UTC) is None


@pytest.mark.parametrize("written", [None, "", "  ", "..", "None", "null", "nan", "NaT", "n/a"])
def test_a_date_that_is_not_there_leaves_the_interval_open(written: str | None) -> None:
    validity = validity_of(Source("Text.", effective=written, expires=written), UTC)
    assert validity.period == Period(None, None)
    assert not validity.unreadable


def test_never_is_a_date_to_expire_on_and_none_to_be_effective_from() -> None:
    assert validity_of(Source("Text.", effective="never", expires="never"), UTC).unreadable == ("effective",)


def test_both_dates_can_be_unreadable() -> None:
    validity = validity_of(Source("Text.", effective="1.1.2024", expires="soon"), UTC)
    assert validity.unreadable == ("effective", "expires")
    assert validity.period == Period(None, None)


@given(st.text(max_size=50) | st.from_regex(r"\A[0-9]{4}-?[0-9W]{2}-?[0-9]{1,2}[T ][0-9:.+-]{0,20}Z?\Z"))
def test_any_string_is_read_or_not(written: str) -> None:
    now = Period(at(2024, 7, 1), at(2024, 7, 1))
    for zone in (UTC, timezone(timedelta(hours=14)), ZoneInfo("America/New_York")):
        period = read_date(written, zone)
        if period is not None:
            assert not (period.is_before(now) and period.is_after(now))
            assert period.start is not None
            assert period.end is None or period.start <= period.end
