"""Values that follow from others: the sum, difference, product or share of what a passage says."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lrp4rag.values.index import Index, Place
from lrp4rag.values.quantities import find_quantities
from lrp4rag.values.value import Precision, Value, close, comparable
from lrp4rag.values.written import number_of

_TOTAL = re.compile(
    r"\b(?:in total|total(?:s|ling|led)?|altogether|combined|together|in all|all in all|sum|overall|in sum"
    r"|(?:on|an|the) average|averages?)\b",
    re.IGNORECASE,
)
_APART = re.compile(
    r"\b(?:by|more|less|fewer|higher|lower|taller|longer|shorter|older|younger|heavier|lighter|bigger|difference"
    r"|still|remain\w*|left|owes?|lasted|lasts|for|apart|gap|margin|saved?|saves|saving|cheaper|aged?"
    r"|years old)\b",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\b(?:each|per|an?|every|times|twice|apiece|daily|weekly|monthly|sets? of|packs? of|boxes of|both)\b",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r"\b(?:each|per|split|shared?|divided|equally|average|of|half|quarter|third|percent|doubled|tripled)\b|%",
    re.IGNORECASE,
)
_MOST = 12
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

    def shifted(self, by: int) -> Computed:
        """The same in a passage that begins `by` characters earlier."""
        return replace(self, parts=tuple((start + by, end + by) for start, end in self.parts))


def is_arithmetic(sentence: str) -> bool:
    """Whether a sentence says that it counts together: "in total", "on average"."""
    return bool(_TOTAL.search(sentence))


def computed(value: Value, sentence: str, index: Index, similarities: Sequence[float]) -> Computed | None:
    """How a quantity of a `sentence` follows from values of the place that says most of it and the places
    beside that; None where it does not. `similarities` are those of the places of the `index`."""
    if value.kind != "quantity" or not math.isfinite(value.amount):
        return None
    ranked = sorted(range(len(similarities)), key=lambda k: -similarities[k])
    for best in ranked[:2]:
        if similarities[best] <= 0:
            return None
        places = [
            index.places[k]
            for k in (best, best - 1, best + 1)
            if 0 <= k < len(index.places) and index.places[k].passage == index.places[best].passage
        ]
        for words, parts in _results(value, sentence, places):
            spans = tuple((one.start, one.end) for one in parts)
            return Computed(value.start, value.end, value.text, words, index.places[best].passage, spans)
    return None


def _results(value: Value, sentence: str, places: Sequence[Place]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    near = [one for place in places for one in place.values][: 2 * _MOST]
    amounts = [one for one in near if one.kind == "quantity" and math.isfinite(one.amount)][:_MOST]
    same = [one for one in amounts if comparable(one, value)]
    others = (one for one in find_quantities(sentence) if value.text not in one.text)
    counts = [number for one in others if (number := number_of(one)) is not None]
    own = [one for one in places[0].values if one in same] if places else []
    for sign, parts in itertools.chain(
        _sums(value, sentence, own, same), _differences(value, sentence, same)
    ):
        yield sign.join(one.text for one in parts), parts
    for words, parts in itertools.chain(
        _products(value, sentence, amounts, counts), _shares(value, sentence, amounts), _years(value, near)
    ):
        yield words, parts


def _sums(
    value: Value, sentence: str, own: Sequence[Value], same: Sequence[Value]
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    pool = same if _TOTAL.search(sentence) else own if abs(value.amount) >= _LARGE else ()
    for size in range(2, min(len(pool), 5) + 1):
        for parts in itertools.combinations(pool, size):
            if _is(value, math.fsum(one.amount for one in parts)):
                yield " + ", parts


def _differences(
    value: Value, sentence: str, same: Sequence[Value]
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    if _APART.search(sentence):
        for parts in itertools.permutations(same, 2):
            if parts[0].amount > parts[1].amount and _is(value, parts[0].amount - parts[1].amount):
                yield " - ", parts


def _products(
    value: Value, sentence: str, amounts: Sequence[Value], counts: Sequence[float]
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """`counts` are numbers beside the value in its own sentence: "for four days"."""
    if value.amount < _LARGE and not (_EACH.search(sentence) or _TOTAL.search(sentence)):
        return
    for one in (one for one in amounts if comparable(one, value)):
        for other in amounts:
            counts_it = not other.unit and other.amount > 1 and one is not other
            if counts_it and _is(value, one.amount * other.amount):
                yield f"{one.text} \u00d7 {other.text}", (one, other)
        for count in counts:
            if count > 1 and _is(value, one.amount * count):
                yield f"{one.text} \u00d7 {count:g}", (one,)


def _shares(value: Value, sentence: str, amounts: Sequence[Value]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    if not _SHARED.search(sentence):
        return
    for one, other in itertools.permutations(amounts, 2):
        if not other.amount:
            continue
        if value.unit == "%" and comparable(one, other) and _is(value, 100 * one.amount / other.amount):
            yield f"{one.text} / {other.text}", (one, other)
        shared = comparable(one, value) and not other.unit and other.amount > 1
        if shared and _is(value, one.amount / other.amount):
            yield f"{one.text} / {other.text}", (one, other)


def _years(value: Value, near: Sequence[Value]) -> Iterator[tuple[str, tuple[Value, ...]]]:
    if value.unit != "second" or value.precision.factor < _YEAR / 2:
        return
    dates = [one for one in near if one.kind == "date" and isinstance(one.key[0], int) and not one.unit]
    for one, other in itertools.permutations(dates, 2):
        if _is(value, _YEAR * (int(one.key[0] or 0) - int(other.key[0] or 0))):
            yield f"{one.text} - {other.text}", (one, other)


def _is(value: Value, amount: float) -> bool:
    return amount != 0 and close(value, replace(value, amount=amount, precision=Precision()))
