"""What a response says of a conflict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lrp4rag.claims.extents import Extent, alike, differ
from lrp4rag.claims.places import Place
from lrp4rag.claims.subjects import Span

NEAR = 0.5
"""The part of the words that a response and a side of a conflict share, from which it speaks of it; half
is enough where it has the value of a side."""


def touched(
    response: Sequence[Place], sides: Iterable[tuple[Place, Span]], asked: Iterable[Place] = ()
) -> Span | None:
    """Characters of the response that a conflict is about: a value that is that of a side, or one like it in
    a sentence that says nearly the same; None where it says nothing of it. A short answer has the words of
    the question that is `asked`: "It is 16 weeks."."""
    question = frozenset(stem for one in asked for stem in _words(one))
    best: tuple[float, Span] | None = None
    for statement, span in sides:
        value = next((x for x in statement.extents if (x.start, x.end) == span), None)
        for sentence in response:
            if not statement.stems & (sentence.stems | question):
                continue
            nearness = _nearness(_words(sentence), statement)
            if value:
                in_reply = _nearness(_words(sentence) | question, statement)
                found = _value(sentence, value, nearness, max(nearness, in_reply))
            else:
                found = _polarity(sentence, statement, span, nearness)
            if found and (best is None or found[0] > best[0]):
                best = found
    return best[1] if best else None


def _value(sentence: Place, value: Extent, nearness: float, in_reply: float) -> tuple[float, Span] | None:
    best: tuple[float, Span] | None = None
    for one in sentence.extents:
        if alike(one, value):
            same = not differ(one, value)
            near = in_reply >= NEAR / 2 if same else nearness >= NEAR
            if near and (best is None or nearness + same > best[0]):
                best = nearness + same, (sentence.start + one.start, sentence.start + one.end)
    return best


def _polarity(sentence: Place, statement: Place, span: Span, nearness: float) -> tuple[float, Span] | None:
    if nearness < NEAR:
        return None
    wanted = {one.unit for one in statement.polarity if (one.start, one.end) == span}
    for one in sentence.polarity:
        if one.unit in wanted:
            return nearness + 1, (sentence.start + one.start, sentence.start + one.end)
    return nearness, (sentence.start, sentence.end)


def _nearness(first: set[str], statement: Place) -> float:
    """Return the part of the shorter one's words that the other has; words of values count in neither."""
    second = _words(statement)
    return len(first & second) / max(min(len(first), len(second)), 1)


def _words(statement: Place) -> set[str]:
    spans = [(value.start, value.end) for value in statement.own_values if value.kind != "polarity"]
    return {
        token.stem
        for token in statement.tokens
        if token.stem and not any(start <= token.start < end for start, end in spans)
    }
