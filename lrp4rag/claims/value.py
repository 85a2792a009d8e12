"""`Value`: a span of text that can contradict another: a quantity, a date, a name, a "not"."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lrp4rag.claims.units import dimension

Key = tuple[str | int | None, ...]
Bound = Literal["", "least", "most"]
""""least" for "at least", "more than"; "most" for "at most", "up to": a half line, not an amount."""
Kind = Literal["quantity", "date", "time", "period", "name", "polarity", "reference", "absence"]
"""Kinds of values: a value contradicts values of its own kind only.

* `quantity`: a number with what it counts or measures; money, percentages and durations too.
* `date`, `time`: of a calendar or a clock. `period`: how often ("per month", "weekly").
* `name`: of people, places, products, and identifiers ("E4").
* `polarity`: words whose opposite is another statement ("not", "before", "only").
* `reference`: which passage is meant ("Passage 2"). `absence`: that the passages do not tell something.
"""
NUMERIC: frozenset[Kind] = frozenset({"quantity", "date", "time"})
"""Kinds that have numbers: two of them are equal or not, whatever words stand around."""


ROUNDED, EXACT = 0.05, 0.02
"""Relative difference up to which an amount rounds one with more decimals, or one with more digits before
its zeros: 61 m and 61.4 m, 5 million and 4.98 million."""
HEDGED, FREELY = 0.05, 0.1
"""Tolerances with "about" or "nearly": for any amount, and as far as the zeros of the amount reach."""
CONVERTED, ZEROS = 0.01, 0.03
"""Tolerances between two units of measure: 8 km and 5 miles, 61.4 m and 200 feet."""
WORDS, FEW = 0.125, 20.0
"""Tolerance of "about an hour" and "nearly half"; up to which count "about" means one more or less."""
NEAR = 1.5
"""How many times the amount of a claim with "more than" the source may have: nobody says "at least 8 hours"
of 7 days."""
SAME_MONTHS = 0.035
"""Tolerance between durations in months or years and in days: 6 months, 180 days."""
DEGREES = 0.6
"""Kelvins between temperatures in Celsius and in Fahrenheit that agree."""
WORKDAYS, WEEKEND = 7, 8
"""Numbers in the place of a day of the week."""
_SMALL = 1e-4
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Precision:
    """The precision of a written quantity, in its base unit.

    * `step`: half of its last written place: 0.5 m of "61 m", 500,000 of "5 million".
    * `zeros`: half of its last non-zero place before the decimal point: 50 of "1,300".
    * `digits`: how many significant digits are written; `factor`: base units to the unit it is written in.
    * `bound`, `hedged`: "at least" or "up to", and "about", before or behind it;
      `loss`: whether it is a "loss of", which may have a minus elsewhere.
    """

    step: float = 0.0
    zeros: float = 0.0
    digits: int = 1
    factor: float = 1.0
    bound: Bound = ""
    hedged: bool = False
    loss: bool = False

    @classmethod
    def around(cls, room: float, factor: float) -> Precision:
        """Return the precision of a fraction or a word, which may be off by `room` of a unit."""
        return cls(room * factor, room * factor, 1, factor)

    def scaled(self, by: float, factor: float) -> Precision:
        """Return the precision of an amount `by` times as large, written in a unit of that `factor`."""
        return replace(self, step=self.step * by, zeros=self.zeros * by, factor=factor)


@dataclass(frozen=True, slots=True)
class Value:
    """Characters `start` to `end` (exclusive) of a text, that `text`, and its meaning.

    * `amount`: of a quantity, in `unit`; always finite there, not a number for the other kinds.
    * `unit`: of a quantity, its base unit ("second", "meter", "EUR", "%"; "" for a plain count). Of other
      kinds, a class within which values are compared: "weekday", "decade", "code", or the family of a
      polarity word.
    * `noun`: the noun of a plain count ("working day"), where the text has one.
    * `key`: the normal form of anything else: (year, month, day, weekday) of a date, words of a name, minutes
      of a time (and 12 where the text does not say which half of the day).
    * `precision`: of a quantity, how exactly it is written.
    """

    kind: Kind
    start: int
    end: int
    text: str
    amount: float = math.nan
    unit: str = ""
    noun: str = ""
    key: Key = ()
    precision: Precision = Precision()

    def shifted(self, by: int) -> Value:
        """Return the value `by` characters further on."""
        return replace(self, start=self.start + by, end=self.end + by)


def comparable(first: Value, second: Value) -> bool:
    """Say whether two values could answer the same question: of one kind, and quantities of one dimension."""
    if first.kind == "date" == second.kind:
        return _calendar(first.unit) == _calendar(second.unit)
    return first.kind == second.kind and dimension(first.unit) == dimension(second.unit)


def _calendar(unit: str) -> str:
    """Return the calendar of a date's unit: days, decades and centuries share one; weekdays and quarters of a
    year have their own."""
    return unit if unit in ("weekday", "quarter") else ""


def agree(claim: Value, source: Value) -> bool:
    """Say whether a claim's value follows from a source's: "two weeks" from "14 days", "3 Sept" from
    "3 September 2021", "Harmsen" from "Piet Harmsen".

    Reflexive, but of quantities not symmetric: a claim may round what its source has, or bound it, and not
    the other way round: "about 5 million" and "more than 4 million" follow from "4.98 million". Nor is it
    transitive: "March" agrees with each of its days.
    """
    if not comparable(claim, source):
        return False
    if claim.kind == "quantity":
        return _follows(claim, source)
    if claim.kind == "date":
        return _same_date(claim, source)
    if claim.kind == "time":
        return _same_time(claim.key, source.key)
    if claim.kind == "name":
        return _same_name(claim.key, source.key)
    return claim.key == source.key


def _follows(claim: Value, source: Value) -> bool:
    if claim.unit != source.unit:
        return False
    if close(claim, source):
        return True
    bound = "" if source.precision.bound else claim.precision.bound
    if not bound:
        return False
    low, high = sorted((claim.amount, source.amount))
    near = low > 0 and high <= NEAR * low
    return near and (source.amount > claim.amount if bound == "least" else source.amount < claim.amount)


def equal(claim: Value, source: Value) -> bool:
    """Say whether two amounts are the same but for what a computer's fractions lose."""
    return abs(claim.amount - source.amount) <= _SMALL * max(abs(claim.amount), abs(source.amount))


def close(claim: Value, source: Value) -> bool:
    """Say whether a claim's amount is the source's, at the precision with which it is written.

    A claim is as exact as its last written place; with more zeros than the source has it is rounded; "about"
    and another unit of measure give it more room.
    """
    if equal(claim, source):
        return True
    apart, size = abs(claim.amount - source.amount), max(abs(claim.amount), abs(source.amount))
    precision, source_precision = claim.precision, source.precision
    if claim.amount * source.amount < 0:
        if not (precision.loss or source_precision.loss):
            return False
        apart = abs(abs(claim.amount) - abs(source.amount))
    room = min(precision.step, ROUNDED * size)
    if source_precision.digits > precision.digits + 1:
        room = max(room, min(precision.zeros, EXACT * size))
    if precision.hedged or source_precision.hedged:
        room = max(room, HEDGED * size, min(precision.zeros, FREELY * size))
        # "about an hour", "nearly half"
        if precision.digits == 1 and precision.step < _SMALL**0.5 * precision.factor:
            room = max(room, WORDS * size)
        elif precision.step == 0.5 and size <= FEW:
            room = max(room, 1.0)
    if precision.factor != source_precision.factor:
        room = max(room, CONVERTED * size, min(max(precision.zeros, source_precision.zeros), ZEROS * size))
        if claim.unit == "second" and (precision.factor > 28 * _DAY) != (source_precision.factor > 28 * _DAY):
            room = max(room, SAME_MONTHS * size)
    if claim.unit == "kelvin":  # zero is no zero there
        room = max(
            precision.step, DEGREES * (precision.factor != source_precision.factor), 1.5 * precision.hedged
        )
    return apart <= room * (1 + 1e-9)


def without_overlaps(values: Iterable[Value]) -> list[Value]:
    """Return the values that share no character with an earlier one of `values`; linear in the text."""
    taken = bytearray()
    result = []
    for value in values:
        taken.extend(bytes(max(value.end - len(taken), 0)))
        if taken.find(1, value.start, value.end) < 0:
            taken[value.start : value.end] = b"\1" * (value.end - value.start)
            result.append(value)
    return result


def _same_date(first: Value, second: Value) -> bool:
    """Say whether all parts that both dates have are equal, at least one; a year lies in its decade and
    century."""
    if first.unit == "weekday":
        return bool(_days(first.key) & _days(second.key))
    span = max(_YEARS.get(first.unit, 1), _YEARS.get(second.unit, 1))
    both = [(a, b) for a, b in zip(first.key, second.key, strict=True) if a is not None and b is not None]
    if span > 1:
        years = first.key[0], second.key[0]
        return (
            isinstance(years[0], int) and isinstance(years[1], int) and years[0] // span == years[1] // span
        )
    return bool(both) and all(a == b for a, b in both)


def _days(key: Key) -> frozenset[int]:
    """Return the days of the week, 0 to 6: those of "weekends", or a single one."""
    day = int(key[3] or 0)
    return {WORKDAYS: frozenset(range(5)), WEEKEND: frozenset((5, 6))}.get(day, frozenset((day,)))


_YEARS = {"decade": 10, "century": 100}


def _same_time(key: Key, other_key: Key) -> bool:
    """Say whether two times are the same minute, of half a day where either leaves the half open."""
    first, second = int(key[0] or 0), int(other_key[0] or 0)
    return first == second or (len(key + other_key) > 2 and (first - second) % 720 == 0)


def _same_name(first: Key, second: Key) -> bool:
    """Say whether a name has all the words of the other, or is its initials, or its plural ("PINs")."""
    if set(first) <= set(second) or set(second) <= set(first):
        return True
    if {str(word).removesuffix("s") for word in first} == {str(word).removesuffix("s") for word in second}:
        return len(first) == len(second) == 1
    fewer, more = sorted((first, second), key=len)
    return len(fewer) == 1 and str(fewer[0]) == "".join(str(word)[:1] for word in more)
