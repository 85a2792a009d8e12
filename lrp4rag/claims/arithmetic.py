"""Values that follow from others: the sum, difference, product or share of what a passage says."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lrp4rag.claims.index import Index, Occurrence
from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.value import Precision, Value, agree, close, comparable
from lrp4rag.claims.written import number_of

_TOTAL = re.compile(
    r"\b(?:in total|total(?:s|ling|led)?|altogether|combined|together|in all|all in all|sum|overall)\b",
    re.IGNORECASE,
)
_APART = re.compile(
    r"\b(?:by|more|less|fewer|rest|higher|lower|taller|longer|shorter|older|younger|heavier|lighter|bigger|difference"
    r"|still|remain\w*|left|owes?|lasted|lasts|for|apart|gap|margin|saved?|saves|saving|cheaper|aged?"
    r"|years old)\b",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\b(?:each|per|every|(?:times|once|twice) (?:a|per|every)|apiece|daily|weekly|monthly|both"
    r"|a (?:day|night|week|month|year|hour|person)|(?:set|pack|box)(?:e?s)? of)\b",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r"\b(?:each|per|split|shared?|divided|equally|average|of|half|quarter|third|percent|doubled|tripled)\b|%",
    re.IGNORECASE,
)
_MOST = 8
"""Values of a passage that are tried, the nearest first."""
_LARGE = 10.0
"""From here on a number is no chance hit of two others in one sentence."""
_YEAR = 31557600.0


@dataclass(frozen=True, slots=True)
class Computed:
    """Characters `start` to `end` of a text, that `text`, which `words` such as "24 + 18" give: `parts` are
    characters of passage `passage` (an index)."""

    start: int
    end: int
    text: str
    words: str
    passage: int
    parts: tuple[tuple[int, int], ...]


def is_arithmetic(sentence: str) -> bool:
    """Whether a sentence says that it counts together: "in total", "on average"."""
    return bool(_TOTAL.search(sentence))


def may_be_total(
    value: Value, sentence: str, other: Occurrence, passages: Sequence[str], index: Index
) -> bool:
    """Whether a quantity of a `sentence` counts together what a passage has singly, such as the `other`
    value: not where that stands as a total too, or where there is nothing to count together."""
    if value.kind != "quantity" or not is_arithmetic(sentence):
        return False
    places = [one for one in index.places if one.passage == other.passage]
    parts = [one for place in index.places for one in place.values if comparable(value, one)]
    totals = (
        is_arithmetic(passages[one.passage][one.start : one.end])
        for one in places
        if other.value in one.values
    )
    return len(parts) > 1 and not any(totals)


@dataclass(frozen=True, slots=True)
class _Place:
    """A `value` of a `sentence`, and the place of a passage that says most of it: its text (`said`), its
    quantities (`own`), and those and the dates of the places beside it too."""

    value: Value
    sentence: str
    said: str
    own: tuple[Value, ...]
    quantities: tuple[Value, ...]
    dates: tuple[Value, ...]

    @property
    def alike(self) -> list[Value]:
        """Those that the value could be a sum of."""
        return [one for one in self.quantities if comparable(one, self.value)]

    @property
    def is_small(self) -> bool:
        """Whether its number may well be a chance hit of two others."""
        return abs(number_of(self.value) or 0) < _LARGE

    def repeats(self, other: Value) -> bool:
        """Whether the sentence has a value of the place too."""
        return any(agree(one, other) for one in _stated(self.sentence))

    def counts(self) -> list[float]:
        """Numbers of times or things beside the value in its own sentence: "for four days"."""
        others = [one for one in _stated(self.sentence) if self.value.text not in one.text]
        plain = [number_of(one) for one in others if one.unit in ("", "second")]
        return [number for number in plain if number is not None and number > 1]


@lru_cache(maxsize=8)
def _stated(sentence: str) -> tuple[Value, ...]:
    """The quantities of a sentence, kept for its other values."""
    return tuple(find_quantities(sentence))


Result = tuple[str, tuple[Value, ...]]


def computed(
    value: Value, sentence: str, passages: Sequence[str], index: Index, similarities: Sequence[float]
) -> Computed | None:
    """How a quantity of a `sentence` follows from values of a place of the `passages` that says most of it,
    and of the places beside that; None where it does not. `similarities` are those of the places of the
    `index`."""
    if value.kind != "quantity" or not math.isfinite(value.amount):
        return None
    ranked = sorted(range(len(similarities)), key=lambda k: -similarities[k])
    for best in (k for k in ranked[:2] if similarities[k] > 0):
        place = _around(value, sentence, passages, index, best)
        ways = (_sums, _differences, _products, _shares, _years)
        for words, parts in itertools.chain.from_iterable(way(place) for way in ways):
            spans = tuple((one.start, one.end) for one in parts)
            return Computed(value.start, value.end, value.text, words, index.places[best].passage, spans)
    return None


def _around(value: Value, sentence: str, passages: Sequence[str], index: Index, best: int) -> _Place:
    own = index.places[best]
    beside = [index.places[k] for k in (best - 1, best + 1) if 0 <= k < len(index.places)]
    near = [own, *(place for place in beside if place.passage == own.passage)]
    values = [one for place in near for one in place.values]
    quantities = [one for one in values if one.kind == "quantity" and math.isfinite(one.amount)][:_MOST]
    dates = [one for one in values if one.kind == "date" and isinstance(one.key[0], int) and not one.unit]
    inside = tuple(one for one in quantities if own.start <= one.start < own.end)
    said = passages[own.passage][own.start : own.end]
    return _Place(value, sentence, said, inside, tuple(quantities), tuple(dates[:_MOST]))


def _sums(place: _Place) -> Iterator[Result]:
    if is_arithmetic(place.sentence):
        pool = place.alike
    else:
        pool = [one for one in place.alike if one in place.own]
        pool = pool if len(pool) == 2 or not place.is_small else []
    for size in range(2, min(len(pool), 4) + 1):
        for parts in itertools.combinations(pool, size):
            if _is(place.value, math.fsum(one.amount for one in parts)):
                yield " + ".join(one.text for one in parts), parts


def _differences(place: _Place) -> Iterator[Result]:
    if _APART.search(place.sentence):
        for one, other in itertools.permutations(place.alike, 2):
            if one.amount > other.amount and _is(place.value, one.amount - other.amount):
                yield f"{one.text} - {other.text}", (one, other)


def _products(place: _Place) -> Iterator[Result]:
    if not _EACH.search(f"{place.said} {place.sentence}"):
        return
    for one in (one for one in place.own if comparable(one, place.value)):
        for other in place.own:
            counts_it = not other.unit and other.amount > 1 and one is not other
            counts_it = counts_it and not place.repeats(other)  # "10 ml twice a day" is not 5 ml twice a day
            if counts_it and _is(place.value, one.amount * other.amount):
                yield f"{one.text} \u00d7 {other.text}", (one, other)
        for count in place.counts():
            if _is(place.value, one.amount * count):
                yield f"{one.text} \u00d7 {count:g}", (one,)


def _shares(place: _Place) -> Iterator[Result]:
    value = place.value
    if not _SHARED.search(place.sentence):
        return
    for one, other in itertools.permutations(place.own, 2):
        words = f"{one.text} / {other.text}"
        if not other.amount:
            continue
        if value.unit == "%" and comparable(one, other) and _is(value, 100 * one.amount / other.amount):
            yield words, (one, other)
        shared = comparable(one, value) and not other.unit and other.amount > 1
        if shared and _is(value, one.amount / other.amount):
            yield words, (one, other)


def _years(place: _Place) -> Iterator[Result]:
    if place.value.unit != "second" or place.value.precision.factor < _YEAR / 2:
        return
    for one, other in itertools.permutations(place.dates, 2):
        if _is(place.value, _YEAR * (int(one.key[0] or 0) - int(other.key[0] or 0))):
            yield f"{one.text} - {other.text}", (one, other)


def _is(value: Value, amount: float) -> bool:
    """Whether an amount is the value's, exactly but for its last written place."""
    return amount != 0 and close(value, replace(value, amount=amount, precision=Precision()))
