"""`Extent`: what a sentence says of one thing: a value, or the two ends of a range, and its bound."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims.bounds import bound_of
from lrp4rag.claims.value import Bound, Value, agree, close, comparable, without_overlaps

_FROM = re.compile(r"\bfrom (?:the )?\Z", re.IGNORECASE)
_ONCE = re.compile(r"\bonce(?= only\b|[.;,)]|\Z)", re.IGNORECASE)
_JOINED = re.compile(r" ?(?:to|until|till|and|[-\u2010-\u2015]) ?|, (?=[A-Z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extent:
    """Characters `start` to `end` of a sentence: from the value `first` to the value `last`, which is `first`
    again where there is one only. `bound` is that of "at least" or "up to"."""

    first: Value
    last: Value
    bound: Bound = ""

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
    once = (Value("quantity", *match.span(), match[0], 1.0, "", "time") for match in _ONCE.finditer(text))
    every = sorted(without_overlaps((*values, *once)), key=lambda one: one.start)
    some = [one for one in every if one.kind in ("quantity", "date", "time", "period", "name")]
    while some:
        first = last = some.pop(0)
        while some and _are_one(text, last, some[0]):
            last = some.pop(0)
        bound = bound_of(text, first.start, last.end)
        if not bound and _FROM.search(text[max(first.start - 10, 0) : first.start]):
            bound = "least"
        yield Extent(first, last, bound)


def alike(one: Extent, other: Extent) -> bool:
    """Say whether both could fill the same slot."""
    if not comparable(one.first, other.first):
        return False
    nouns = [set(side.first.noun.split()) for side in (one, other)]
    return one.kind != "quantity" or not all(nouns) or bool(nouns[0] & nouns[1])


def differ(one: Extent, other: Extent) -> bool:
    """Say whether both cannot be true of one thing; neither where one contains or rounds the other."""
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


def agrees(one: Extent, other: Extent) -> bool:
    """Say whether both could fill the same slot, and be true of one thing."""
    return alike(one, other) and not differ(one, other)


def same(one: Extent, other: Extent) -> bool:
    """Say whether they say the same; names that share a word may not ("Vaccine A", "Vaccine B")."""
    if one.kind == "name":
        return agree(one.first, other.first) and agree(one.last, other.last)
    return agrees(one, other)


def _are_one(text: str, one: Value, other: Value) -> bool:
    """Say whether two values are the ends of a range, or a place and its country."""
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
    """Say whether one is the other as people write it: rounded, hedged, in another unit."""
    if one.kind != "quantity" or one.is_range or other.is_range:
        return False
    a, b = one.first, other.first
    return a.unit == b.unit and (close(a, b) or close(b, a))
