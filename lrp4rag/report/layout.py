"""How the page lays out prompt and response: runs of text for the template to write, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.reader.encoding import Encoded
from lrp4rag.report.pieces import Piece
from lrp4rag.report.view import View, level


@dataclass(frozen=True, slots=True)
class Part:
    """Text with its step of shading; None where no token is.

    `kind` is "gone" for what truncation dropped, and "break" for line breaks after a passage, which
    ends its line anyway.
    """

    text: str
    level: int | None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive parts of one segment: `kind` is template, question or passage."""

    kind: str
    name: str
    parts: list[Part] = field(default_factory=list)


def prompt_runs(encoded: Encoded, pieces: list[Piece], view: View) -> list[Run]:
    """The prompt's segments in the order of its text."""
    runs: list[Run] = []
    shaded = iter(view.mean if view.mean.size else ())
    for piece in pieces:
        text = encoded.text[piece.start : piece.end]
        if piece.tokens:
            name = encoded.segment_names[encoded.segments[piece.tokens[0]]]
            value = next(shaded, None)
            step = 0 if value is None else level(float(value), view.scale)
            part = Part(text, step, "break" if _only_breaks(text) and _after_passage(runs, name) else "")
        else:
            name = runs[-1].name if runs else encoded.segment_names[0]
            part = Part(text, None, "gone" if encoded.dropped and text.strip() else "")
        if not runs or runs[-1].name != name:
            runs.append(Run(name.split(" ", maxsplit=1)[0], name))
        runs[-1].parts.append(part)
    return runs


def _only_breaks(text: str) -> bool:
    return not text.strip() and "\n" in text


def _after_passage(runs: list[Run], name: str) -> bool:
    """Whether nothing but line breaks separates a part of segment `name` from a passage before it."""
    if not runs or runs[-1].name == name:
        return len(runs) > 1 and runs[-2].kind == "passage" and all(p.kind == "break" for p in runs[-1].parts)
    return runs[-1].kind == "passage"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Text of the response between boundaries; `item` is the response piece that it belongs to."""

    text: str
    item: int | None
    suspect: bool


def response_runs(
    analysis: Analysis, pieces: list[Piece]
) -> list[tuple[int | None, list[tuple[bool, list[Stretch]]]]]:
    """(sentence or None, its (suspect, stretches) groups), in the order of the response."""
    groups = groupby(_stretches(analysis, pieces), key=lambda pair: pair[0])
    return [
        (
            sentence,
            [
                (suspect, list(same))
                for suspect, same in groupby((s for _, s in pairs), key=lambda stretch: stretch.suspect)
            ],
        )
        for sentence, pairs in groups
    ]


def _stretches(analysis: Analysis, pieces: list[Piece]) -> Iterable[tuple[int | None, Stretch]]:
    response = analysis.relevance.encoded.response
    items = [(piece.start, piece.end) for piece in pieces if piece.tokens]
    sentences = [(sentence.start, sentence.end) for sentence in analysis.verdict.sentences]
    spans = [(span.start, span.end) for span in analysis.verdict.spans]
    edges = {0, len(response), *(edge for pair in (*items, *sentences, *spans) for edge in pair)}
    ordered = sorted(edge for edge in edges if 0 <= edge <= len(response))
    for start, end in pairwise(ordered):
        stretch = Stretch(response[start:end], _holding(items, start), _holding(spans, start) is not None)
        yield _holding(sentences, start), stretch


def _holding(spans: list[tuple[int, int]], position: int) -> int | None:
    return next((k for k, (start, end) in enumerate(spans) if start <= position < end), None)
