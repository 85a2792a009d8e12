"""`Operand`: a known value from which others may follow, and the arithmetic of values."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from lrp4rag.claims.value import Key, Kind, Value, comparable

MOST_NEAR = 100
"""Values of a passage that are looked at, the first ones."""
EXACT, ROUNDED = 1e-4, 0.01
"""Relative differences of amounts that are the same, and of one that is rounded, at most."""
DAY = 86400.0
CALENDAR = 28 * DAY
"""The shortest unit of the calendar whose length varies: a month."""
YEAR = 365.25 * DAY
MINUTES = 60.0
_LARGEST = 1e6
TWO = "both|couple|twins|two of (?:us|you)"
PERSONS = "child|person|head|adult|pupil|guest|passenger"
_EACH = re.compile(
    rf"\s*(?:an?|per|each|every|/)\s*(night|day|week|month|year|hour|minute|{PERSONS})\b", re.IGNORECASE
)


def telling(pattern: str) -> re.Pattern[str]:
    """Return an expression for words that tell of an operation, or "="."""
    return re.compile(rf"\b(?:{pattern})\b|=", re.IGNORECASE)


LARGER = telling("dearer|more|longer|extra|taller|higher|older|heavier|bigger|larger")
SMALLER = telling("cheaper|less|fewer|shorter|saves?|saving|lower|younger|lighter|smaller")
COMPARED = re.compile(rf"{LARGER.pattern}|{SMALLER.pattern}|\bdifference\b", re.IGNORECASE)
LESS = telling("off|discount(?:ed)?|reduc\\w+|rebate|cheaper|less|minus|deduct\\w*")
MORE = telling("plus|surcharge|extra|additional|increas\\w+|rais\\w+|more|vat|tax(?:es)?")


@dataclass(frozen=True, slots=True)
class Operand:
    """A known value, and the passage that has it, or a value that it was derived from; None where only the
    question has it. `is_stated` tells that the sentence itself has it; `rate` is the unit for each of which
    the passage has it, such as "day"."""

    value: Value
    passage: int | None
    is_stated: bool = False
    rate: str = ""


def rate_of(text: str, value: Value) -> str:
    """Return the unit for each of which a passage has a value: "day" of "9 euros a day"; "" for none."""
    match = _EACH.match(text, value.end)
    return match[1].lower() if match else ""


def terms_of(value: Value, operands: Sequence[Operand]) -> list[Operand]:
    """Return the operands of a value's kind and dimension."""
    return [operand for operand in operands if comparable(value, operand.value)]


def of_kind(kind: Kind, operands: Sequence[Operand]) -> list[Operand]:
    """Return the operands whose values are of a kind."""
    return [operand for operand in operands if operand.value.kind == kind]


def difference(*values: Value) -> str:
    """Return the larger of two values "less" the smaller."""
    return " - ".join(value.text for value in sorted(values, key=lambda value: -value.amount))


def is_result(value: Value, amount: float) -> bool:
    """Say whether an amount is the value's, which may round it where it has three digits or more, or where it
    is "about" that."""
    precision, most = value.precision, ROUNDED * amount
    room = most if precision.hedged else min(precision.step, most) if precision.digits > 2 else 0.0
    return amount > 0 and abs(value.amount - amount) <= max(EXACT * amount, room)


def moved_time(value: Value, duration: Value, way: int) -> Key | None:
    """Return the key of a time of the day a duration later or earlier; None if that is no whole minute."""
    minutes = int(value.key[0] or 0) + way * duration.amount / MINUTES
    is_whole = abs(minutes) < _LARGEST and minutes == round(minutes)
    return (round(minutes) % 1440, *value.key[1:]) if is_whole else None


def moved_date(value: Value, duration: Value, way: int) -> Key | None:
    """Return the key of a date a number of days, weeks, months or years later or earlier; None where it lacks
    the year, the month or the day that this needs."""
    year, month, day, *_ = value.key
    number, unit = way * duration.amount / duration.precision.factor, round(duration.precision.factor / DAY)
    if abs(number) > _LARGEST or number != round(number):
        return None
    any_year = year if isinstance(year, int) else 2001
    moved: tuple[int, int | str | None, int | str | None]
    if unit in (365, 366) and isinstance(year, int):
        return year + int(number), month, day, None
    if unit in (30, 31) and isinstance(month, int):
        months = any_year * 12 + month - 1 + int(number)
        moved_year, moved_month = months // 12, months % 12 + 1
        if not 1 <= moved_year <= 9999:
            return None
        last = monthrange(moved_year, moved_month)[1]
        moved = moved_year, moved_month, min(day, last) if isinstance(day, int) else day
    elif unit in (1, 7) and isinstance(month, int) and isinstance(day, int):
        try:
            later = date(any_year, month, day) + timedelta(days=unit * number)
        except (ValueError, OverflowError):
            return None
        moved = later.year, later.month, later.day
    else:
        return None
    return moved[0] if isinstance(year, int) else None, *moved[1:], None
