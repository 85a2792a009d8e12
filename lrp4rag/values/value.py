"""`Value`: a stretch of text that can contradict another: a quantity, a date, a name, a "not"."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Key = tuple[str | int | None, ...]
Kind = Literal["quantity", "date", "time", "period", "name", "polarity", "reference", "absence"]
"""What is compared with what: a value contradicts values of its own kind only.

* `quantity`: a number with what it counts or measures; money, percentages and durations too.
* `date`, `time`: of a calendar or a clock. `period`: how often ("per month", "weekly").
* `name`: of people, places, products, and identifiers ("E4").
* `polarity`: words whose opposite is another statement ("not", "before", "only").
* `reference`: which passage is meant ("Passage 2"). `absence`: that the passages do not tell something.
"""


@dataclass(frozen=True, slots=True)
class Value:
    """Characters `start` to `end` (exclusive) of a text, that `text`, and what it comes to.

    * `amount`: of a quantity, in `unit`; always finite there, not a number for the other kinds.
    * `unit`: of a quantity, its base unit ("second", "meter", "EUR", "%"; "" for a plain count). Of other
      kinds, a class within which values are compared: "weekday", "decade", "code", or the family of a
      polarity word.
    * `noun`: what a plain count counts ("working day"), where it can be told.
    * `key`: the normal form of anything else: (year, month, day, weekday) of a date, words of a name.
    """

    kind: Kind
    start: int
    end: int
    text: str
    amount: float = math.nan
    unit: str = ""
    noun: str = ""
    key: Key = ()

    def shifted(self, by: int) -> Value:
        """The same, of a text that has `by` more characters before it."""
        return replace(self, start=self.start + by, end=self.end + by)


def comparable(one: Value, other: Value) -> bool:
    """Whether they could answer the same question: of one kind, and quantities of one dimension."""
    return one.kind == other.kind and one.unit == other.unit


def agree(one: Value, other: Value) -> bool:
    """Whether they say the same in other words: "two weeks" and "14 days", "3 Sept" and "3 September 2021",
    "Harmsen" and "Piet Harmsen".

    Symmetric and reflexive, but not transitive: "March" agrees with each of its days.
    """
    if not comparable(one, other):
        return False
    if one.kind == "quantity":
        return math.isclose(one.amount, other.amount, rel_tol=1e-4)
    if one.kind == "date":
        return _same_date(one.key, other.key)
    if one.kind == "name":
        return _same_name(one.key, other.key)
    return one.key == other.key


def without_overlaps(values: Iterable[Value]) -> list[Value]:
    """Those that share no character with one that comes before them in `values`; linear in the text."""
    taken = bytearray()
    kept = []
    for one in values:
        taken.extend(bytes(max(one.end - len(taken), 0)))
        if taken.find(1, one.start, one.end) < 0:
            taken[one.start : one.end] = b"\1" * (one.end - one.start)
            kept.append(one)
    return kept


def _same_date(one: Key, other: Key) -> bool:
    """All parts that both have are equal, and there is such a part."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return bool(both) and all(a == b for a, b in both)


def _same_name(one: Key, other: Key) -> bool:
    """One has all the words of the other, or is its initials."""
    if set(one) <= set(other) or set(other) <= set(one):
        return True
    fewer, more = sorted((one, other), key=len)
    return len(fewer) == 1 and str(fewer[0]) == "".join(str(word)[:1] for word in more)
