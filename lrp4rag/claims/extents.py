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
    again where there is no range. `bound` is that of "at least" or "up to"."""

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
        """The least and the largest amount that the extent admits; of times, in minutes."""
        low, high = sorted((_amount(self.first), _amount(self.last)))
        return (-math.inf if self.bound == "most" else low, math.inf if self.bound == "least" else high)


def extents(text: str, values: Sequence[Value]) -> Iterator[Extent]:
    """Yield the extents of the quantities, dates, times, periods and names of a sentence, in its order."""
    once = (Value("quantity", *match.span(), match[0], 1.0, "", "time") for match in _ONCE.finditer(text))
    every = sorted(without_overlaps((*values, *once)), key=lambda value: value.start)
    candidates = [value for value in every if value.kind in ("quantity", "date", "time", "period", "name")]
    while candidates:
        first = last = candidates.pop(0)
        while candidates and _are_one(text, last, candidates[0]):
            last = candidates.pop(0)
        bound = bound_of(text, first.start, last.end)
        if not bound and _FROM.search(text[max(first.start - 10, 0) : first.start]):
            bound = "least"
        yield Extent(first, last, bound)


def alike(extent: Extent, rival: Extent) -> bool:
    """Say whether both could fill the same slot."""
    if not comparable(extent.first, rival.first):
        return False
    nouns = [set(side.first.noun.split()) for side in (extent, rival)]
    return extent.kind != "quantity" or not all(nouns) or bool(nouns[0] & nouns[1])


def differ(extent: Extent, rival: Extent) -> bool:
    """Say whether both cannot be true of one thing: neither contains or rounds the other."""
    if extent.kind == rival.kind == "time" and extent.is_range and rival.is_range:
        return extent.limits != rival.limits  # "from 12:00 to 15:00" against "from 13:00 to 14:00"
    if extent.kind in ("quantity", "time"):
        return not (_contains(extent, rival) or _contains(rival, extent) or _rounds(extent, rival))
    if agree(extent.first, rival.first) or agree(extent.last, rival.last):
        return False
    if extent.kind == "date":
        pairs = zip(extent.first.key, rival.first.key, strict=True)
        return any(a is not None and b is not None for a, b in pairs)
    if extent.kind == "name" and extent.first.unit != "code":
        return not set(extent.first.key + extent.last.key) & set(rival.first.key + rival.last.key)
    return True


def agrees(extent: Extent, rival: Extent) -> bool:
    """Say whether both could fill the same slot, and be true of one thing."""
    return alike(extent, rival) and not differ(extent, rival)


def same(extent: Extent, rival: Extent) -> bool:
    """Say whether both say the same; names that share a word may not ("Vaccine A", "Vaccine B")."""
    if extent.kind == "name":
        return agree(extent.first, rival.first) and agree(extent.last, rival.last)
    return agrees(extent, rival)


def _are_one(text: str, first: Value, second: Value) -> bool:
    """Say whether two values are the ends of a range, or a place and its country."""
    if second.start - first.end > 7 or first.kind != second.kind or first.unit != second.unit:
        return False
    match = _JOINED.fullmatch(text, first.end, second.start)
    if not match or first.kind not in ("quantity", "time", "name"):
        return False
    if first.kind == "name":
        return match[0] == ", "
    is_between = text[max(first.start - 9, 0) : first.start].lower().endswith("between ")
    return is_between or match[0].strip().lower() not in ("and", ",")


def _amount(value: Value) -> float:
    return float(value.key[0] or 0) if value.kind == "time" else value.amount


def _contains(extent: Extent, rival: Extent) -> bool:
    (low, high), (lower, higher) = extent.limits, rival.limits
    if extent.bound == rival.bound != "":
        return math.isclose(_amount(extent.first), _amount(rival.first), rel_tol=1e-4)
    if extent.bound and rival.bound:
        return low <= higher and lower <= high
    return (low <= lower or math.isclose(low, lower, rel_tol=1e-4)) and (
        high >= higher or math.isclose(high, higher, rel_tol=1e-4)
    )


def _rounds(extent: Extent, rival: Extent) -> bool:
    """Say whether one is the other as people write it: rounded, hedged, in another unit."""
    if extent.kind != "quantity" or extent.is_range or rival.is_range:
        return False
    a, b = extent.first, rival.first
    return a.unit == b.unit and (close(a, b) or close(b, a))
