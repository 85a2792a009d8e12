"""Values that follow from others: the sum, difference, product or share of what a passage says, or what
rounds it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lrp4rag.claims.index import Index, Occurrence
from lrp4rag.claims.operands import YEAR
from lrp4rag.claims.quantities import find_quantities
from lrp4rag.claims.value import Precision, Value, agree, close, comparable, equal
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
"""A number of at least this size rarely equals a sum of two others in its sentence by chance."""


ComputedKind = Literal["computed", "rounded"]


@dataclass(frozen=True, slots=True)
class Computed:
    """Characters `start` to `end` of a text, that `text`, which `words` such as "24 + 18" give; `parts` are
    the operands, characters of passage `passage` (an index). A rounded value has the words of the passage."""

    start: int
    end: int
    text: str
    words: str
    passage: int
    parts: tuple[tuple[int, int], ...]
    kind: ComputedKind = "computed"


def is_arithmetic(sentence: str) -> bool:
    """Say whether a sentence gives a total or a mean: "in total", "on average"."""
    return bool(_TOTAL.search(sentence))


def may_be_total(
    value: Value, sentence: str, rival: Occurrence, passages: Sequence[str], index: Index
) -> bool:
    """Say whether a quantity of a `sentence` may be the total of values that the passages have singly, such
    as `rival`: not if its passage has that as a total too, or there is nothing to add."""
    if value.kind != "quantity" or not is_arithmetic(sentence):
        return False
    passage_places = [entry for entry in index.places if entry.passage == rival.passage]
    terms = [entry for place in index.places for entry in place.values if comparable(value, entry)]
    totals = (
        is_arithmetic(passages[entry.passage][entry.start : entry.end])
        for entry in passage_places
        if rival.value in entry.values
    )
    return len(terms) > 1 and not any(totals)


@dataclass(frozen=True, slots=True)
class _Context:
    """A `value` of a `sentence` that has the quantities `stated`, and the place of a passage that says most
    of it: its text, its quantities, and the quantities and dates of it and of the places beside it."""

    value: Value
    sentence: str
    stated: tuple[Value, ...]
    passage_text: str
    own_quantities: tuple[Value, ...]
    quantities: tuple[Value, ...]
    dates: tuple[Value, ...]

    @property
    def alike(self) -> list[Value]:
        """The quantities of the value's dimension: candidates for the terms of a sum."""
        return [quantity for quantity in self.quantities if comparable(quantity, self.value)]

    @property
    def is_small(self) -> bool:
        """Whether its number may well be a chance hit of two others."""
        return abs(number_of(self.value) or 0) < _LARGE

    def repeats(self, value: Value) -> bool:
        """Say whether the sentence has a value of the passage too."""
        return any(agree(stated, value) for stated in self.stated)

    def counts(self) -> list[float]:
        """Return the numbers of times or things beside the value in its own sentence: "for four days"."""
        rest = [quantity for quantity in self.stated if self.value.text not in quantity.text]
        numbers = [number_of(quantity) for quantity in rest if quantity.unit in ("", "second")]
        return [number for number in numbers if number is not None and number > 1]


Result = tuple[str, tuple[Value, ...]]


def computed(
    value: Value, sentence: str, passages: Sequence[str], index: Index, similarities: Sequence[float]
) -> Computed | None:
    """Compute a quantity of a `sentence` from values of the place of the `passages` that is most like it, and
    of the places beside that; return None if none gives it. `similarities` are those of the places of the
    `index`."""
    if value.kind != "quantity" or not math.isfinite(value.amount):
        return None
    ranked = sorted(range(len(similarities)), key=lambda k: -similarities[k])
    for best in (k for k in ranked[:2] if similarities[k] > 0):
        context = _around(value, sentence, passages, index, best)
        ways = (_sums, _differences, _products, _shares, _years)
        for words, terms in itertools.chain.from_iterable(way(context) for way in ways):
            spans = tuple((term.start, term.end) for term in terms)
            return Computed(value.start, value.end, value.text, words, index.places[best].passage, spans)
    return None


def rounded(value: Value, occurrences: Sequence[Occurrence]) -> Computed | None:
    """Return the occurrence that a quantity rounds, of its `occurrences` (the most similar first); None if
    one of them is the same amount, or none has more digits."""
    if value.kind != "quantity":
        return None
    close_ones = [occurrence for occurrence in occurrences if close(value, occurrence.value)]
    if any(equal(value, occurrence.value) for occurrence in close_ones):
        return None
    for occurrence in close_ones:
        source = occurrence.value
        if source.precision.digits > value.precision.digits and source.amount * value.amount > 0:
            spans = ((source.start, source.end),)
            return Computed(
                value.start, value.end, value.text, source.text, occurrence.passage, spans, "rounded"
            )
    return None


def _around(value: Value, sentence: str, passages: Sequence[str], index: Index, best: int) -> _Context:
    centre = index.places[best]
    values = [candidate for k in (best, *index.beside(best)) for candidate in index.places[k].values]
    finite = (
        candidate for candidate in values if candidate.kind == "quantity" and math.isfinite(candidate.amount)
    )
    quantities = tuple(itertools.islice(finite, _MOST))
    dates = [
        candidate
        for candidate in values
        if candidate.kind == "date" and isinstance(candidate.key[0], int) and not candidate.unit
    ]
    own_quantities = tuple(
        candidate for candidate in quantities if centre.start <= candidate.start < centre.end
    )
    passage_text = passages[centre.passage][centre.start : centre.end]
    stated = tuple(find_quantities(sentence))
    return _Context(value, sentence, stated, passage_text, own_quantities, quantities, tuple(dates[:_MOST]))


def _sums(context: _Context) -> Iterator[Result]:
    if is_arithmetic(context.sentence):
        pool = context.alike
    else:
        pool = [term for term in context.alike if term in context.own_quantities]
        pool = pool if len(pool) == 2 or not context.is_small else []
    for size in range(2, min(len(pool), 4) + 1):
        for terms in itertools.combinations(pool, size):
            if _is(context.value, math.fsum(term.amount for term in terms)):
                yield " + ".join(term.text for term in terms), terms


def _differences(context: _Context) -> Iterator[Result]:
    if _APART.search(context.sentence):
        for minuend, subtrahend in itertools.permutations(context.alike, 2):
            if minuend.amount > subtrahend.amount and _is(context.value, minuend.amount - subtrahend.amount):
                yield f"{minuend.text} - {subtrahend.text}", (minuend, subtrahend)


def _products(context: _Context) -> Iterator[Result]:
    if not _EACH.search(f"{context.passage_text} {context.sentence}"):
        return
    for factor in (factor for factor in context.own_quantities if comparable(factor, context.value)):
        for counted in context.own_quantities:
            is_count = not counted.unit and counted.amount > 1 and factor is not counted
            # "10 ml twice a day" is not 5 ml twice a day.
            is_count = is_count and not context.repeats(counted)
            if is_count and _is(context.value, factor.amount * counted.amount):
                yield f"{factor.text} \u00d7 {counted.text}", (factor, counted)
        for count in context.counts():
            if _is(context.value, factor.amount * count):
                yield f"{factor.text} \u00d7 {count:g}", (factor,)


def _shares(context: _Context) -> Iterator[Result]:
    value = context.value
    if not _SHARED.search(context.sentence):
        return
    for dividend, divisor in itertools.permutations(context.own_quantities, 2):
        formula = f"{dividend.text} / {divisor.text}"
        if not divisor.amount:
            continue
        if (
            value.unit == "%"
            and comparable(dividend, divisor)
            and _is(value, 100 * dividend.amount / divisor.amount)
        ):
            yield formula, (dividend, divisor)
        shared = comparable(dividend, value) and not divisor.unit and divisor.amount > 1
        if shared and _is(value, dividend.amount / divisor.amount):
            yield formula, (dividend, divisor)


def _years(context: _Context) -> Iterator[Result]:
    if context.value.unit != "second" or context.value.precision.factor < YEAR / 2:
        return
    for later, earlier in itertools.permutations(context.dates, 2):
        if _is(context.value, YEAR * (int(later.key[0] or 0) - int(earlier.key[0] or 0))):
            yield f"{later.text} - {earlier.text}", (later, earlier)


def _is(value: Value, amount: float) -> bool:
    """Say whether an amount is the value's, up to its last written place."""
    return amount != 0 and close(value, replace(value, amount=amount, precision=Precision()))
