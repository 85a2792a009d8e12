"""`Conflicts`: passages that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from lrp4rag.claims.differences import Difference, difference
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
from lrp4rag.guard.checks.conflicts.touched import touched
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
