"""Cut prompt and response into pieces for the page, with the relevance that shades them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded, tokens_in
from lrp4rag.report.words import VALUE_LENGTH
from lrp4rag.util.text import one_line

LEVELS = 10
"""Steps of shading on either side of zero."""

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `end` of a text and the tokens that share them; none between tokens."""

    start: int
    end: int
    tokens: tuple[int, ...]


def cut(offsets: Sequence[tuple[int, int]], length: int) -> list[Piece]:
    """Pieces that cover `length` characters in order, tokens that overlap in one piece.

    Byte-level tokens share characters (an emoji is several tokens with the same offsets). Tokens
    without characters, such as a start-of-text token, are in no piece.
    """
    pieces: list[Piece] = []
    shown = (token for token, (start, end) in enumerate(offsets) if start < end)
    for token in sorted(shown, key=lambda token: offsets[token]):
        start, end = offsets[token]
        if pieces and start < pieces[-1].end:
            last = pieces[-1]
            pieces[-1] = Piece(last.start, max(last.end, end), (*last.tokens, token))
        else:
            pieces.append(Piece(start, end, (token,)))
    return list(_with_gaps(pieces, length))


def _with_gaps(pieces: list[Piece], length: int) -> Iterable[Piece]:
    cursor = 0
    for piece in pieces:
        if cursor < piece.start:
            yield Piece(cursor, piece.start, ())
        yield piece
        cursor = piece.end
    if cursor < length:
        yield Piece(cursor, length, ())


def sum_over(rows: NDArray[np.floating], pieces: Sequence[Piece]) -> NDArray[np.float64]:
    """Sums of the columns of `rows` (k, tokens) over each piece's tokens, (k, pieces with tokens)."""
    held = [piece for piece in pieces if piece.tokens]
    columns = np.array([token for piece in held for token in piece.tokens], dtype=np.intp)
    counts = np.array([len(piece.tokens) for piece in held], dtype=np.intp)
    if not held:
        return np.zeros((len(rows), 0))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    result: NDArray[np.float64] = np.add.reduceat(np.asarray(rows, np.float64)[:, columns], starts, axis=1)
    return result


@dataclass(frozen=True, slots=True)
class View:
    """Per sentence: prompt pieces' relevance and segments' relevance.

    `scale` is the relevance shaded most; `mean` and `mean_bars` are shown while nothing is chosen.
    `rows` (sentences, pieces) or `bars` (sentences, segments) have no column where that was not attributed.
    """

    rows: Rows
    bars: Rows
    mean: Rows
    mean_bars: Rows
    scale: float

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": rounded(self.rows, self.scale),
            "bars": rounded(self.bars),
            "mean": rounded(self.mean, self.scale),
            "meanBars": rounded(self.mean_bars),
            "scale": self.scale,
        }


def sentence_view(analysis: Analysis, pieces: list[Piece]) -> View:
    """Average relevance over each sentence's tokens."""
    offsets = analysis.encoded.response_offsets
    masks = [tokens_in(offsets, [(sentence.start, sentence.end)]) for sentence in analysis.sentences]
    weights = np.array([mask / mask.sum() for mask in masks]).reshape(-1, len(offsets))
    rows = np.zeros((len(masks), 0))
    if analysis.sentence_rows is not None:
        rows = sum_over(analysis.sentence_rows, pieces)
    bars = np.zeros((len(masks), 0))
    if analysis.by_segment is not None:
        bars = weights @ np.asarray(analysis.by_segment, np.float64).T
    # Relevance is heavy-tailed (control tokens above all): the largest would leave the rest blank.
    scale = float(np.quantile(np.abs(rows), 0.98)) if rows.size else 0.0
    if not scale and rows.size:
        scale = float(np.abs(rows).max())
    return View(
        rows=rows,
        bars=bars,
        mean=rows.mean(0) if len(rows) else rows.sum(0),
        mean_bars=bars.mean(0) if len(bars) else bars.sum(0),
        scale=float(f"{scale:.3g}") or 1.0,
    )


def level(value: float, scale: float) -> int:
    """Return the step of shading, -LEVELS..LEVELS, as the page's script does."""
    steps = min(math.floor(abs(value) / scale * LEVELS + 0.5), LEVELS)
    return int(math.copysign(steps, value))


def rounded(values: Rows, scale: float | None = None) -> Any:
    """Nested lists, rounded to keep the page small: 4 significant digits of `scale`, or of the largest."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if not largest:
        return np.zeros(values.shape, dtype=int).tolist()
    decimals = 3 - math.floor(math.log10(scale or largest))
    return (np.round(values, decimals) + 0.0).tolist()


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` of the prompt, which contradict the response, and a `note` on how."""

    start: int
    end: int
    note: str


def contradicted_places(analysis: Analysis) -> list[Place]:
    """Return the characters of the prompt that contradict the response."""
    places = []
    for contradiction in (one for span in analysis.spans for one in span.contradictions):
        inside = contradiction.passage, contradiction.passage_start, contradiction.passage_end
        if analysis.excerpt is not None and not analysis.excerpt.reads(*inside[:2]):
            continue  # texts were compared whole
        start, end = inside[1:] if analysis.excerpt is None else analysis.excerpt.within(*inside)
        first, _ = analysis.encoded.spans[FIRST_PASSAGE + contradiction.passage]
        note = f'The response has "{one_line(contradiction.text, VALUE_LENGTH)}"'
        places.append(Place(first + start, first + end, note))
    return places


@dataclass(frozen=True, slots=True)
class Part:
    """Text with its step of shading; None where no token is.

    The text is in `pieces`, each with a note where it contradicts the response. `kind` is "gone" for what
    truncation dropped, and "break" for line breaks after a passage, which ends its line anyway.
    """

    pieces: tuple[tuple[str, str], ...]
    level: int | None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive parts of one segment: `kind` is template, question or passage."""

    kind: str
    name: str
    parts: list[Part] = field(default_factory=list)


def prompt_runs(encoded: Encoded, pieces: list[Piece], view: View, places: Sequence[Place] = ()) -> list[Run]:
    """Return the prompt's segments in the order of its text, with notes on the characters of `places`."""
    runs: list[Run] = []
    shaded = iter(view.mean if view.mean.size else ())
    for piece in pieces:
        text = encoded.text[piece.start : piece.end]
        noted = tuple(_noted(encoded.text, piece, places))
        if piece.tokens:
            name = encoded.segment_names[encoded.segments[piece.tokens[0]]]
            value = next(shaded, None)
            step = 0 if value is None else level(float(value), view.scale)
            breaks = not text.strip() and "\n" in text and _after_passage(runs, name)
            part = Part(noted, step, "break" if breaks else "")
        else:
            name = runs[-1].name if runs else encoded.segment_names[0]
            part = Part(noted, None, "gone" if encoded.dropped and text.strip() else "")
        if not runs or runs[-1].name != name:
            runs.append(Run(name.split(" ", maxsplit=1)[0], name))
        runs[-1].parts.append(part)
    return runs


def _noted(text: str, piece: Piece, places: Sequence[Place]) -> Iterable[tuple[str, str]]:
    """Cut a piece where a place begins or ends; yield each part with its notes."""
    edges = {edge for place in places for edge in (place.start, place.end) if piece.start < edge < piece.end}
    for start, end in pairwise(sorted({piece.start, piece.end} | edges)):
        notes = dict.fromkeys(place.note for place in places if place.start <= start < place.end)
        yield text[start:end], "; ".join(notes)


def _after_passage(runs: list[Run], name: str) -> bool:
    """Say whether only line breaks separate a part of segment `name` from a passage before it."""
    if not runs or runs[-1].name == name:
        return len(runs) > 1 and runs[-2].kind == "passage" and all(p.kind == "break" for p in runs[-1].parts)
    return runs[-1].kind == "passage"


def response_runs(analysis: Analysis) -> list[tuple[int | None, list[tuple[bool, str]]]]:
    """Return (sentence or None, its (suspect, text) parts), in the order of the response."""
    response = analysis.encoded.response
    sentences = [(sentence.start, sentence.end) for sentence in analysis.sentences]
    spans = [(span.start, span.end) for span in analysis.spans]
    edges = {0, len(response), *(edge for pair in (*sentences, *spans) for edge in pair)}
    parts = [
        (_holding(sentences, start), (_holding(spans, start) is not None, response[start:end]))
        for start, end in pairwise(sorted(edge for edge in edges if 0 <= edge <= len(response)))
    ]
    groups = groupby(parts, key=lambda part: part[0])
    return [(sentence, [part for _, part in parts]) for sentence, parts in groups]


def _holding(spans: list[tuple[int, int]], position: int) -> int | None:
    return next((k for k, (start, end) in enumerate(spans) if start <= position < end), None)
