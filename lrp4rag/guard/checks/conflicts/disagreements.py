"""Where two sentences say different things of the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims.extents import Extent, alike, differ, same
from lrp4rag.claims.places import Place
from lrp4rag.claims.polarity import opposed, opposites
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
"""Words with an opposite that tell conditions apart, and state nothing by themselves."""
_STATES = re.compile(r"\b(?:is|are|was|were|be|been|has|have|by|named|called)\b|\w{2}ed\b", re.IGNORECASE)
_ONLY_ONE = re.compile(
    r" (?:(?:is|was|are|were|became|remains|has been|will be) the|won|wins|leads?|led|heads|headed|chairs|"
    r"founded|invented|discovered|designed|wrote|directed|hosts|hosted)\b"
)
"""What follows a subject of which there is one only."""
_NUMBERED = re.compile(
    r"\b(?:section|step|article|chapter|clause|paragraph|figure|table|page|part|phase|stage|type|class|grade|tier|"
    r"zone|group|question|item|module|lesson|appendix|annex|rule|category|passage|no\.|number) \Z",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"\W*(?:in|on|at|by|from|since|until|during|for|as of|with)\b[^,]{0,30}\Z|\W*\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Characters `one` of a sentence against characters `other` of another."""

    one: Span
    other: Span


def disagreement(
    one: Place, other: Place, *, strict: bool = False, several: bool = False
) -> Disagreement | None:
    """Return the value that is another in an otherwise equal statement; of polarity, where no value is.
    `several` values may be others, as in two versions of one text."""
    mine, theirs = one.extents, other.extents
    for a in mine:
        for b in theirs:
            if _may_differ(a, mine, b, theirs) and _is_stated(one, a) and _is_stated(other, b):
                sides = _sides(one, (a.start, a.end), mine, other, (b.start, b.end), theirs)
                if _nothing_else(a, b, mine, theirs, sides, several) and same_subject(
                    *sides, strict=strict, several=several
                ):
                    return Disagreement((a.start, a.end), (b.start, b.end))
    for p, q in _opposed(one, other):
        sides = _sides(one, p, mine, other, q, theirs)
        if not any(_unmatched(mine, theirs, sides)) and same_subject(*sides, strict=strict, several=several):
            return Disagreement(with_verb(one, p), with_verb(other, q))
    return None


def _may_differ(a: Extent, mine: Sequence[Extent], b: Extent, theirs: Sequence[Extent]) -> bool:
    """Say whether they are alike and differ, and neither sentence has the other's value elsewhere."""
    if not alike(a, b) or not differ(a, b):
        return False
    return not any(alike(a, x) and not differ(a, x) for x in theirs) and not any(
        alike(b, x) and not differ(b, x) for x in mine
    )


def _is_stated(statement: Place, extent: Extent) -> bool:
    """Say whether a sentence states it: a date at its beginning is a period, a name there the subject, unless
    only one can be, and the number of a section is its name."""
    before = statement.text[: extent.start]
    if extent.kind == "date" or (extent.kind == "name" and extent.first.unit != "code"):
        if _FRONTED.match(before):
            return extent.kind == "name" and bool(_ONLY_ONE.match(statement.text, extent.end))
        return extent.kind == "date" or bool(_STATES.search(before))
    return not (extent.kind == "quantity" and not extent.first.unit and _NUMBERED.search(before))


def _sides(
    one: Place, a: Span, mine: Sequence[Extent], other: Place, b: Span, theirs: Sequence[Extent]
) -> tuple[Side, Side]:
    def known(some: Sequence[Extent], rest: Sequence[Extent]) -> list[Span]:
        return [(x.start, x.end) for x in some if any(same(x, y) for y in rest)]

    return Side(one, a, known(mine, theirs)), Side(other, b, known(theirs, mine))


def _unmatched(
    mine: Sequence[Extent], theirs: Sequence[Extent], sides: tuple[Side, Side]
) -> Iterator[tuple[Extent, Extent]]:
    """Pairs of other values of their clauses that differ: they tell what the statements are about apart."""
    for x in mine:
        for y in theirs:
            if x.end <= sides[0].reach and y.end <= sides[1].reach and _may_differ(x, mine, y, theirs):
                yield x, y


def _nothing_else(
    a: Extent,
    b: Extent,
    mine: Sequence[Extent],
    theirs: Sequence[Extent],
    sides: tuple[Side, Side],
    several: bool,
) -> bool:
    for x, y in _unmatched(mine, theirs, sides):
        if (x is a and y is b) or (several and a.kind == x.kind == "time"):
            continue
        return False
    return not any(_spans_opposed(sides))


def _spans_opposed(sides: tuple[Side, Side]) -> Iterator[bool]:
    """Say whether words with an opposite, such as "not" or "without", tell the statements apart."""
    first, second = (_polarity(side) for side in sides)
    for p in first:
        for q in second:
            if (
                opposed(p, q)
                and not any(q.key == x.key for x in first)
                and not any(p.key == x.key for x in second)
            ):
                yield True
    if {p.key for p in first if p.key[1]} != {q.key for q in second if q.key[1]}:
        yield True


def _polarity(side: Side) -> list[Value]:
    """Those of the value's clause. "At least" and the like belong to the values behind them."""
    return [
        one
        for one in side.place.polarity
        if one.end <= side.reach and one.key[0] not in ("at least", "at most", "above", "over", "more than")
    ]


def _opposed(one: Place, other: Place) -> Iterator[tuple[Span, Span]]:
    """Words that state the opposite, where they are the only ones that differ."""
    first, second = (side.polarity for side in (one, other))
    rest = [p for p in first if not any(p.key == q.key for q in second)]
    others = [q for q in second if not any(p.key == q.key for p in first)]
    pairs = [(p, q) for p in rest for q in others if opposed(p, q)]
    if len(pairs) == 1 and not {pairs[0][0].key[0], pairs[0][1].key[0]} & _QUALIFIES:
        yield _span(pairs[0][0]), _span(pairs[0][1])
    elif not pairs:
        negated = [p for p in rest if p.key[1]], [q for q in others if q.key[1]]
        if len(negated[0]) == 1 and not negated[1] and (found := _stated(negated[0][0], one, other)):
            yield _span(negated[0][0]), found
        if len(negated[1]) == 1 and not negated[0] and (found := _stated(negated[1][0], other, one)):
            yield found, _span(negated[1][0])


def _stated(negated: Value, denying: Place, statement: Place) -> Span | None:
    """Where a sentence says without a "not" what another says with one."""
    return _plainly(negated, statement) or _denied(negated, denying, statement)


def _plainly(negated: Value, statement: Place) -> Span | None:
    for word in opposites(negated):
        found = re.search(rf"\b{re.escape(word)}\b", statement.text, re.IGNORECASE) if word else None
        if found:
            return found.span()
    return None


def _denied(negated: Value, denying: Place, statement: Place) -> Span | None:
    """Where a sentence has the verb that another denies: "covers", "does not cover"."""
    verb = next((token for token in denying.tokens if token.start >= negated.end), None)
    if verb is None or not verb.stem or negated.key[0] != "not":
        return None
    return next(((token.start, token.end) for token in statement.tokens if token.stem == verb.stem), None)


def _span(value: Value) -> Span:
    return value.start, value.end


def with_verb(statement: Place, span: Span) -> Span:
    """Return a "not" or an auxiliary with what it denies or states: "are not allowed"."""
    after = next((token for token in statement.tokens if token.start >= span[1]), None)
    if after is None or not after.stem or statement.text[span[1] : after.start].strip():
        return span
    return span[0], after.end
