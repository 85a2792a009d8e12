"""Dates as documents have them (ISO 8601), and the time in which a passage is valid.

A date names a period: a day, a month or a year. A passage becomes effective when the period begins, and
expires when it ends. A date with a time of the day is a moment: from then on, and until then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from lrp4rag.source import Source

_LONGEST = 40
_NOTHING = frozenset(("", "..", "-", "none", "null", "nan", "nat", "n/a"))
"""Entries in the place of an unknown date, in small letters."""
_NO_END = frozenset(("never", "unlimited"))
_DAY = r"\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?[1-7]"
_YEAR_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_WEEK = re.compile(r"\d{4}-?W\d\d", re.ASCII)
_DATE = re.compile(_DAY, re.ASCII)
_MOMENT = re.compile(rf"({_DAY})[T ](\d\d[\d:.,]{{0,20}}(?:Z|[+-]\d\d:?(?:\d\d)?)?)", re.ASCII)
_MIDNIGHT = re.compile(r"24(?=(?::?00){1,2}(?:[.,]0+)?(?![\d:.,]))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to `end` (exclusive), both with a time zone; None where it is open.

    A moment is a period that ends where it starts."""

    start: datetime | None = None
    end: datetime | None = None

    def is_before(self, other: Period) -> bool:
        """Say whether it is over when the other begins."""
        return self.end is not None and other.start is not None and self.end <= other.start

    def is_after(self, other: Period) -> bool:
        """Say whether it begins when the other is over."""
        if self.start is None or other.end is None or self.start == other.start:
            return False
        return self.start >= other.end

    def has(self, moment: datetime) -> bool:
        """Say whether a moment lies in it."""
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)


@dataclass(frozen=True, slots=True)
class Validity:
    """The time in which a passage is valid, and the names of its fields that cannot be read."""

    period: Period
    unreadable: tuple[str, ...] = ()


def validity_of(source: Source, zone: tzinfo) -> Validity:
    """Read the validity of a passage from its dates; those without a time zone are of `zone`."""
    effective, expires = (source.effective or "").strip(), (source.expires or "").strip()
    first = Period() if effective.lower() in _NOTHING else read_date(effective, zone)
    last = Period() if expires.lower() in _NOTHING | _NO_END else read_date(expires, zone)
    fields = (("effective", first), ("expires", last))
    return Validity(
        Period(first.start if first else None, last.end if last else None),
        tuple(name for name, period in fields if period is None),
    )


def read_date(text: str, zone: tzinfo) -> Period | None:
    """Read a date of ISO 8601: a year, month, week, day or moment; None for anything else."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    try:
        return _read(text.upper(), zone)
    except (ValueError, OverflowError):
        return None


def zone_named(name: str) -> tzinfo:
    """Return the time zone with a name of the IANA. Raises `ValueError`."""
    if name == "UTC":
        return UTC  # needs no database of time zones
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"there is no time zone {name!r}") from error


def _read(text: str, zone: tzinfo) -> Period | None:
    if (match := _YEAR_MONTH.fullmatch(text)) is not None:
        year, month = int(match[1]), int(match[2] or 1)
        after = (year + 1, 1) if match[2] is None or month == 12 else (year, month + 1)
        return Period(datetime(year, month, 1, tzinfo=zone), _midnight(*after, zone))
    if _DATE.fullmatch(text) or _WEEK.fullmatch(text):
        first = date.fromisoformat(text)
        return days(first, 7 if _WEEK.fullmatch(text) else 1, zone)
    if (match := _MOMENT.fullmatch(text)) is not None:
        clock, next_day = (
            _MIDNIGHT.subn("00", match[2], count=1) if match[2].startswith("24") else (match[2], 0)
        )
        moment = datetime.fromisoformat(f"{match[1]}T{clock}") + timedelta(days=next_day)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return Period(moment, moment)
    return None


def days(first: date, number: int, zone: tzinfo) -> Period:
    """Return a period of whole days, from `first` on."""
    start = datetime(first.year, first.month, first.day, tzinfo=zone)
    try:
        after = first + timedelta(days=number)
    except OverflowError:
        return Period(start, None)
    return Period(start, _midnight(after.year, after.month, zone, after.day))


def _midnight(year: int, month: int, zone: tzinfo, day: int = 1) -> datetime | None:
    """Return the start of a day; None after the last day there is, as documents that never expire have
    9999-12-31."""
    return datetime(year, month, day, tzinfo=zone) if year <= 9999 else None
