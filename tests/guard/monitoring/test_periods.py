"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lrp4rag.guard.monitoring.periods import Period, moment, period, preceding
from lrp4rag.util.errors import InputError
from tests.guard.monitoring.logs import NOW


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
    with pytest.raises(InputError, match="is no time; give one such as 7d") as error:
        moment(given, NOW, "since")
    assert error.value.field == "since"
    assert "\x1b" not in str(error.value)


def test_what_is_yet_to_come_is_no_moment() -> None:
    with pytest.raises(InputError, match="2027-01-01 00:00 is yet to come; it is 2026-11-25 12:00"):
        moment("2027-01-01", NOW)


def test_a_period_ends_now_or_where_it_is_told() -> None:
    start = NOW - timedelta(days=7)
    assert period("7d", NOW) == Period(start, NOW)
    assert period("14d", NOW, end=start) == Period(NOW - timedelta(days=14), start)
    assert period("14d..10d", NOW, end=start).length == timedelta(days=4)
    assert str(period("2026-11-01..2026-11-08", NOW)) == "2026-11-01 00:00 to 2026-11-08 00:00"


@pytest.mark.parametrize("given", ["0d", "2026-11-08..2026-11-01", "7d..7d"])
def test_a_period_holds_something(given: str) -> None:
    with pytest.raises(InputError, match=r"it ends at .*, and begins at") as error:
        period(given, NOW, field="baseline")
    assert error.value.field == "baseline"


def test_what_precedes_a_period() -> None:
    late = period("7d", NOW)
    assert preceding(late, 4) == Period(NOW - timedelta(days=35), late.start)
    with pytest.raises(InputError, match="name where it begins"):
        preceding(period("0100-01-01", NOW), 4)
