"""`Extent`: what a sentence says of one thing: a value, or the two ends of a range, and its bound."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lrp4rag.values.value import Value, agree, comparable
from lrp4rag.values.written import number_of

Bound = Literal["", "least", "most"]

SAME_MONTHS = 0.035
"""Relative difference up to which durations in days and in months or years agree: 180 days, 6 months."""
HEDGED, PRECISE = 0.06, 0.02
"""Relative difference up to which a round amount stands for one with more digits: with "about", without."""

CONVERTED = 0.01
"""The same of amounts in two units of measure: 5 miles, 8 km."""
DEGREES = 0.6
"""Kelvins between temperatures in Celsius and in Fahrenheit that agree."""

_BEFORE = 24
_JOINED = re.compile(r" ?(?:to|until|till|and|[-\u2010-\u2015]) ?|, (?=[A-Z])", re.IGNORECASE)
_LEAST = re.compile(
    r"(?:at least|minimum of|(?:no|not) (?:less|fewer) than|more than|over|above|older than|from)"
    r" (?:the )?\Z",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"(?:up to|at most|limited to|maximum of|(?:no|not) more than|less than|fewer than|under|below"
    r"|younger than) (?:the )?\Z",
    re.IGNORECASE,
)
_OR = re.compile(r" or (?:(?P<least>more|newer|later|older|longer|above|over)|less|fewer|below|earlier)\b")
_ABOUT = re.compile(
    r"(?:about|around|approximately|roughly|nearly|almost|some|circa|ca\.|~|over|more than|just under) ?\Z",
    re.IGNORECASE,
)
_MONTHS = re.compile(r"(?:month|quarter|year)s?\Z", re.IGNORECASE)
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Extent:
    """Characters `start` to `end` of a sentence: from the value `first` to the value `last`, which is `first`
    again where there is one only. `bound` is that of "at least" or "up to"; `hedged`: "about"."""

    first: Value
    last: Value
    bound: Bound = ""
    hedged: bool = False

    @property
    def start(self) -> int:
        return self.first.start

    @property
    def end(self) -> int:
        return self.last.end

    @property
    def kind(self) -> str:
        return self.first.kind

    @property
    def is_range(self) -> bool:
        return self.first is not self.last

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest amount that it admits; of times, in minutes."""
        low, high = sorted((_amount(self.first), _amount(self.last)))
        return (-math.inf if self.bound == "most" else low, math.inf if self.bound == "least" else high)


def extents(text: str, values: Sequence[Value]) -> Iterator[Extent]:
    """Those of the quantities, dates, times, periods and names of a sentence, in its order."""
    some = [one for one in values if one.kind in ("quantity", "date", "time", "period", "name")]
    while some:
        first = last = some.pop(0)
        while some and _are_one(text, last, some[0]):
            last = some.pop(0)
        before = text[max(first.start - _BEFORE, 0) : first.start]
        yield Extent(first, last, _bound(text, before, last), bool(_ABOUT.search(before)))


def alike(one: Extent, other: Extent) -> bool:
    """Whether both could fill the same slot."""
    if not comparable(one.first, other.first):
        return False
    nouns = [set(side.first.noun.split()) for side in (one, other)]
    return one.kind != "quantity" or not all(nouns) or bool(nouns[0] & nouns[1])


def differ(one: Extent, other: Extent) -> bool:
    """Whether both cannot be true of one thing; neither where one contains or rounds the other."""
    if one.kind == other.kind == "time" and one.is_range and other.is_range:
        return one.limits != other.limits  # "from 12:00 to 15:00" against "from 13:00 to 14:00"
    if one.kind in ("quantity", "time"):
        return not (_contains(one, other) or _contains(other, one) or _rounds(one, other))
    if agree(one.first, other.first) or agree(one.last, other.last):
        return False
    if one.kind == "date":
        pairs = zip(one.first.key, other.first.key, strict=True)
        return any(a is not None and b is not None for a, b in pairs)
    if one.kind == "name" and one.first.unit != "code":
        return not set(one.first.key + one.last.key) & set(other.first.key + other.last.key)
    return True


def same(one: Extent, other: Extent) -> bool:
    """Whether they say the same; names that share a word may not ("Vaccine A", "Vaccine B")."""
    if one.kind == "name":
        return agree(one.first, other.first) and agree(one.last, other.last)
    return alike(one, other) and not differ(one, other)


def _bound(text: str, before: str, last: Value) -> Bound:
    after = _OR.match(text, last.end)
    if _LEAST.search(before) or (after and after["least"]):
        return "least"
    return "most" if after or _MOST.search(before) else ""


def _are_one(text: str, one: Value, other: Value) -> bool:
    """Whether two values are the ends of a range, or a place and its country."""
    if other.start - one.end > 7 or one.kind != other.kind or one.unit != other.unit:
        return False
    match = _JOINED.fullmatch(text, one.end, other.start)
    if not match or one.kind not in ("quantity", "time", "name"):
        return False
    if one.kind == "name":
        return match[0] == ", "
    joint = match[0].strip().lower()
    return joint not in ("and", ",") or text[max(one.start - 9, 0) : one.start].lower().endswith("between ")


def _amount(value: Value) -> float:
    return float(value.key[0] or 0) if value.kind == "time" else value.amount


def _contains(one: Extent, other: Extent) -> bool:
    (low, high), (lower, higher) = one.limits, other.limits
    if one.bound == other.bound != "":
        return math.isclose(_amount(one.first), _amount(other.first), rel_tol=1e-4)
    if one.bound and other.bound:
        return low <= higher and lower <= high
    return (low <= lower or math.isclose(low, lower, rel_tol=1e-4)) and (
        high >= higher or math.isclose(high, higher, rel_tol=1e-4)
    )


def _rounds(one: Extent, other: Extent) -> bool:
    """Whether one is the other with fewer digits, or in months what the other is in days."""
    if one.kind != "quantity" or one.first is not one.last or other.first is not other.last:
        return False
    a, b = one.first, other.first
    apart = abs(a.amount - b.amount) / max(abs(a.amount), abs(b.amount), 1e-300)
    if a.unit == "kelvin":
        return a.text.split()[-1] != b.text.split()[-1] and abs(a.amount - b.amount) <= DEGREES
    if a.unit == "second" and bool(_MONTHS.search(a.text)) != bool(_MONTHS.search(b.text)):
        return apart <= SAME_MONTHS
    if _DIGITS.sub("", a.text).strip() != _DIGITS.sub("", b.text).strip() and a.unit and apart <= CONVERTED:
        return True
    if one.hedged or other.hedged:
        return apart <= HEDGED
    return apart <= PRECISE and _digits(a) != _digits(b) and bool(_is_long(a) or _is_long(b))


def _digits(value: Value) -> int:
    """How many digits of a number are significant."""
    found = _DIGITS.search(value.text)
    return len(re.sub(r"\D", "", found[0]).strip("0")) if found else 1


def _is_long(value: Value) -> bool:
    number = number_of(value)
    return number is not None and (number >= 1000 or not number.is_integer())
