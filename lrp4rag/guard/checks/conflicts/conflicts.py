"""`Conflicts`: passages that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, cast

from lrp4rag.claims.differences import Difference, difference
from lrp4rag.claims.extents import Extent, alike, differ
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place, places_of
from lrp4rag.claims.subjects import Span
from lrp4rag.guard.checks.check import CheckInput, Detail, Finding, Need
from lrp4rag.guard.checks.conflicts.asked import asked_for
from lrp4rag.guard.checks.conflicts.documents import (
    are_of_one_text,
    are_siblings,
    are_versions,
    named,
    names_one,
    newer,
)
from lrp4rag.source import Source
from lrp4rag.util.text import one_line

Pair = tuple[Place, Place]


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Statements that are equal but for a value: "10 days" in a passage, "14 days" in another.

    `share` is the part of the rarer words (0 to 1) that two sentences must share to be compared, and `most`
    how many conflicts are told.
    """

    share: float = 0.25
    most: int = 20

    name: ClassVar[str] = "conflicts"
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """In the order of the passages. `start` and `end` are of what the response says of a conflict, None
        where it does not touch it. Raises `OverBudget`."""
        response, asked = (
            [place for place in places_of([text], inputs.tick) if not place.is_heading]
            for text in (inputs.response or "", inputs.question)
        )
        index = Index([source.text for source in inputs.sources], inputs.tick, attrgetter("stems"))
        some = [place for place in index.places if not place.is_heading]
        found: list[Finding] = []
        for (one, other), spans in self._differences(inputs, index):
            inputs.tick()
            where = touched(response, ((one, spans.one), (other, spans.other)), asked)
            found.append(_finding(self.name, inputs, (one, other), spans, where))
            if len(found) == self.most:
                break
        told = {finding.passages for finding in found if finding.start is not None}
        for place, other, spans, where in asked_for(asked, response, some, inputs.sources, inputs.tick):
            pair, both = (place, other), spans
            if place.passage > other.passage:
                pair, both = (other, place), Difference(spans.other, spans.one)
            if names_one(inputs.question, inputs.sources[place.passage], inputs.sources[other.passage]):
                continue
            if len(found) < self.most and (passages := (pair[0].passage, pair[1].passage)) not in told:
                told.add(passages)
                found.append(_finding(self.name, inputs, pair, both, where))
        return sorted(found, key=lambda finding: finding.passages)

    def _differences(self, inputs: CheckInput, index: Index) -> Iterator[tuple[Pair, Difference]]:
        """Yield each pair of values once in two passages."""
        seen: set[tuple[int, int, str, str]] = set()
        pairs = index.aligned(self.share, inputs.tick)
        for one, other in _without_repeated(pairs):
            inputs.tick()
            first, second = inputs.sources[one.passage], inputs.sources[other.passage]
            if are_siblings(first, second) or names_one(inputs.question, first, second):
                continue
            spans = difference(
                one, other, strict=are_of_one_text(first, second), several=are_versions(first, second)
            )
            if spans is None:
                continue
            values = (one.text[slice(*spans.one)].casefold(), other.text[slice(*spans.other)].casefold())
            if (one.passage, other.passage, *values) not in seen:
                seen.add((one.passage, other.passage, *values))
                yield (one, other), spans


def _without_repeated(pairs: list[Pair]) -> Iterator[Pair]:
    """Those of which neither sentence is in the other passage as it is."""
    same = {
        (side, other.passage)
        for one, two in pairs
        for side, other in ((one, two), (two, one))
        if one.text.casefold() == two.text.casefold()
    }
    for one, other in pairs:
        if (one, other.passage) not in same and (other, one.passage) not in same:
            yield one, other


def _finding(check: str, inputs: CheckInput, pair: Pair, spans: Difference, where: Span | None) -> Finding:
    statement, rival = pair
    sources = inputs.sources[statement.passage], inputs.sources[rival.passage]
    latest = newer(*sources)
    values = [
        statement.text[start:end]
        for statement, (start, end) in zip(pair, (spans.one, spans.other), strict=True)
    ]
    words = (
        f"Passages {named(statement.passage, sources[0])} and {named(rival.passage, sources[1])} differ: "
        f'"{one_line(values[0], 80)}" against "{one_line(values[1], 80)}".'
    )
    passages = (statement.passage, rival.passage)
    if latest is not None:
        words += f" Passage {passages[latest] + 1} is the newer one."
    details: dict[str, Detail] = {
        "sides": [
            _side(statement, span, source)
            for statement, span, source in zip(pair, (spans.one, spans.other), sources, strict=True)
        ],
        "newer": None if latest is None else passages[latest],
    }
    start, end = where or (None, None)
    return Finding(check, "conflict", words, start=start, end=end, passages=passages, details=details)


def _side(statement: Place, span: Span, source: Source) -> dict[str, Detail]:
    return {
        "passage": statement.passage,
        "text": statement.text,
        "value": statement.text[slice(*span)],
        "start": statement.start + span[0],
        "end": statement.start + span[1],
        "title": source.title,
        "version": source.version,
        "effective": source.effective,
    }


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


QUOTED = 200
"""Characters of a sentence that a note quotes."""
MOST = 8
"""Conflicts that a note names."""


def prompt_note(findings: Sequence[Finding], sources: Sequence[Source]) -> str:
    """Both sides of each conflict with version and date, and how to answer then; "" without a conflict."""
    conflicts = [one for one in findings if one.kind == "conflict"][:MOST]
    if not conflicts:
        return ""
    lines = [
        "The passages contradict each other. Where the answer depends on it, name both sides and sources:"
    ]
    for one in conflicts:
        details = cast(Mapping[str, Any], one.details)
        lines += [f"- {_side_words(side, sources, details['newer'])}" for side in details["sides"]]
    return "\n".join(lines)


def _side_words(side: Mapping[str, Any], sources: Sequence[Source], newer: int | None) -> str:
    passage = side["passage"]
    latest = ", the newer one" if passage == newer else ""
    return f'Passage {named(passage, sources[passage])}{latest}: "{one_line(side["text"], QUOTED)}"'
