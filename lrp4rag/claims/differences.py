"""Where two sentences say different things of the same subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lrp4rag.claims.extents import Extent, agrees, alike, same
from lrp4rag.claims.places import Place
from lrp4rag.claims.polarity import opposed_words, stated_without
from lrp4rag.claims.subjects import Side, Span, same_subject
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import word_set

_QUALIFIES = word_set(
    """
    with without if unless first last some no same different more less most least over under above below
    upper lower left right near far best worst better worse start end starts ends begins opens closes only
    also both neither earlier later on off higher lower
    """
)
"""Words with an opposite that tell conditions apart and state nothing by themselves."""
_BOUNDS = frozenset(("at least", "at most", "above", "over", "more than"))
_STATES = re.compile(r"\b(?:is|are|was|were|be|been|has|have|by|named|called)\b|\w{2}ed\b", re.IGNORECASE)
_ONLY_ONE = re.compile(
    r" (?:(?:is|was|are|were|became|remains|has been|will be) the|won|wins|leads?|led|heads|headed|chairs|"
    r"founded|invented|discovered|designed|wrote|directed|hosts|hosted)\b"
)
"""Words that follow a subject of which there is only one."""
_NUMBERED = re.compile(
    r"\b(?:section|step|article|chapter|clause|paragraph|figure|table|page|part|phase|stage|type|class|grade|tier|"
    r"zone|group|question|item|module|lesson|appendix|annex|rule|category|passage|no\.|number) \Z",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"\W*(?:in|on|at|by|from|since|until|during|for|as of|with)\b[^,]{0,30}\Z|\W*\Z", re.IGNORECASE
)


class Difference(NamedTuple):
    """Characters `one` of the first sentence against characters `other` of the second."""

    one: Span
    other: Span


def difference(
    first: Place, second: Place, *, strict: bool = False, several: bool = False
) -> Difference | None:
    """Return the values that differ in otherwise equal statements, or else the words of opposite polarity.
    With `several`, more values may differ, as in two versions of one text."""
    pairs = list(_differing(first.extents, second.extents))
    for a, b in pairs:
        if _is_stated(first, a) and _is_stated(second, b):
            sides = _sides(first, (a.start, a.end), second, (b.start, b.end))
            rest = [(x, y) for x, y in pairs if not (x is a and y is b)]
            rest = [(x, y) for x, y in rest if not (several and a.kind == x.kind == "time")]
            apart = _in_reach(rest, sides) or _are_opposed(*sides)
            if not apart and same_subject(*sides, strict=strict, several=several):
                return Difference(sides[0].span, sides[1].span)
    if (spans := _opposed_spans(first, second)) is not None:
        sides = _sides(first, spans.one, second, spans.other)
        if not _in_reach(pairs, sides) and same_subject(*sides, strict=strict, several=several):
            return Difference(with_verb(first, spans.one), with_verb(second, spans.other))
    return None


def _differing(mine: Sequence[Extent], theirs: Sequence[Extent]) -> Iterator[tuple[Extent, Extent]]:
    """Yield values that are alike and differ, where neither sentence has the other's value elsewhere."""
    alone = [a for a in mine if not any(agrees(a, y) for y in theirs)]
    rivals = [b for b in theirs if not any(agrees(b, x) for x in mine)]
    return ((a, b) for a in alone for b in rivals if alike(a, b))


def _is_stated(statement: Place, extent: Extent) -> bool:
    """Say whether a sentence states an extent: a date at its beginning is a period, a name there the subject
    (unless there can be only one), and the number of a section is its name."""
    before = statement.text[: extent.start]
    if extent.kind == "date" or (extent.kind == "name" and extent.first.unit != "code"):
        if _FRONTED.match(before):
            return extent.kind == "name" and bool(_ONLY_ONE.match(statement.text, extent.end))
        return extent.kind == "date" or bool(_STATES.search(before))
    return not (extent.kind == "quantity" and not extent.first.unit and _NUMBERED.search(before))


def _sides(first: Place, a: Span, second: Place, b: Span) -> tuple[Side, Side]:
    mine, theirs = (
        tuple((x.start, x.end) for x in side.extents if any(same(x, y) for y in rest.extents))
        for side, rest in ((first, second), (second, first))
    )
    return Side(first, a, mine), Side(second, b, theirs)


def _in_reach(pairs: Iterable[tuple[Extent, Extent]], sides: tuple[Side, Side]) -> bool:
    """Say whether values of both clauses differ: these tell apart what the statements are about."""
    return any(x.end <= sides[0].reach and y.end <= sides[1].reach for x, y in pairs)


def _are_opposed(first_side: Side, second_side: Side) -> bool:
    """Say whether words with an opposite, such as "not" or "without", tell the statements apart. "At least"
    and the like belong to the values behind them."""
    first, second = (
        [word for word in side.place.polarity if word.end <= side.reach and word.key[0] not in _BOUNDS]
        for side in (first_side, second_side)
    )
    denials = ({word.key for word in words if word.key[1]} for words in (first, second))
    return bool(opposed_words(first, second)) or len(set(map(frozenset, denials))) > 1


def _opposed_spans(first: Place, second: Place) -> Difference | None:
    """Return the words that state the opposite, where they are the only ones that differ."""
    pairs = opposed_words(first.polarity, second.polarity)
    if len(pairs) == 1 and _QUALIFIES.isdisjoint((pairs[0][0].key[0], pairs[0][1].key[0])):
        return Difference(_span(pairs[0][0]), _span(pairs[0][1]))
    mine, theirs = (_denials(first, second), _denials(second, first)) if not pairs else ([], [])
    if len(mine) == 1 and not theirs and (stated := _stated(mine[0], first, second)):
        return Difference(_span(mine[0]), stated)
    if len(theirs) == 1 and not mine and (stated := _stated(theirs[0], second, first)):
        return Difference(stated, _span(theirs[0]))
    return None


def _denials(sentence: Place, counterpart: Place) -> list[Value]:
    """Return the words with a "not" that a sentence has alone."""
    keys = {word.key for word in counterpart.polarity}
    return [word for word in sentence.polarity if word.key[1] and word.key not in keys]


def _stated(denial: Value, denying: Place, stating: Place) -> Span | None:
    """Return where a sentence says without a "not" what another says with one: "may", "covers"."""
    return stated_without(denial, stating.text) or verb_denied(denial, denying, stating)


def verb_denied(denial: Value, denying: Place, stating: Place) -> Span | None:
    """Return the verb of a sentence that another denies: "covers", "does not cover"."""
    verb = next((token for token in denying.tokens if token.start >= denial.end), None)
    if verb is None or not verb.stem or denial.key[0] != "not":
        return None
    return next(((token.start, token.end) for token in stating.tokens if token.stem == verb.stem), None)


def _span(value: Value) -> Span:
    return value.start, value.end


def with_verb(statement: Place, span: Span) -> Span:
    """Return a "not" or an auxiliary with what it denies or states: "are not allowed"."""
    after = next((token for token in statement.tokens if token.start >= span[1]), None)
    if after is None or not after.stem or statement.text[span[1] : after.start].strip():
        return span
    return span[0], after.end
