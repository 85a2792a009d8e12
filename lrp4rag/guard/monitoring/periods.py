"""Periods of time, as people write them: 7d, 24h, 2026-11-01, 2026-11-01..2026-11-08."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

_AGO = re.compile(r"([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_BETWEEN = ".."
HELP = "7d, 24h or 2w ago, an ISO 8601 date or time (UTC where it has no zone), or two of them: START..END"
"""What a period may be."""


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` until before `end`, both in UTC. Raises `InputError` where it would hold nothing."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise InputError(f"it ends at {shown(self.end)}, and begins at {shown(self.start)}")

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{shown(self.start)} to {shown(self.end)}"


def moment(text: str, now: datetime, field: str | None = None) -> datetime:
    """A moment in UTC: so long ago, or in ISO 8601. Raises `InputError` for anything else, and for what is
    yet to come."""
    given = text.strip()
    try:
        if (ago := _AGO.fullmatch(given)) is not None:
            return now - int(ago[1]) * _UNITS[ago[2]]
        if re.match(r"[0-9]{4}-?[0-9W]", given) is None:
            raise ValueError
        found = datetime.fromisoformat(given)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"'{one_line(text, 40)}' is no time; give one such as {HELP}"
        raise InputError(message, field=field) from None
    if found > now:
        raise InputError(f"{shown(found)} is yet to come; it is {shown(now)}", field=field)
    return found


def period(text: str, now: datetime, *, end: datetime | None = None, field: str | None = None) -> Period:
    """From a moment until `end` (by default now), or between two. Raises `InputError` naming the field."""
    first, between, last = text.partition(_BETWEEN)
    start = moment(first, now, field)
    until = moment(last, now, field) if between else now if end is None else end
    try:
        return Period(start, until)
    except InputError as error:
        raise InputError(error.reason, field=field) from None


def preceding(late: Period, lengths: int) -> Period:
    """So many times as long, before it. Raises `InputError` where no calendar goes back that far."""
    try:
        return Period(late.start - lengths * late.length, late.start)
    except OverflowError:
        message = f"nothing is that long before {shown(late.start)}: name where it begins"
        raise InputError(message, field="baseline") from None


def shown(time: datetime) -> str:
    """2026-11-01 09:30, to the minute."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
