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
    """Cut `length` characters into pieces in order, with tokens that overlap in one piece.

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
    """Sum the columns of `rows` (k, tokens) over each piece's tokens: (k, pieces with tokens)."""
    filled = [piece for piece in pieces if piece.tokens]
    columns = np.array([token for piece in filled for token in piece.tokens], dtype=np.intp)
    counts = np.array([len(piece.tokens) for piece in filled], dtype=np.intp)
    if not filled:
        return np.zeros((len(rows), 0))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    result: NDArray[np.float64] = np.add.reduceat(np.asarray(rows, np.float64)[:, columns], starts, axis=1)
    return result


@dataclass(frozen=True, slots=True)
class View:
    """Per sentence: prompt pieces' relevance and segments' relevance.

    `scale` is the relevance shaded most; `mean` and `mean_bars` are shown while no sentence is chosen.
    `rows` (sentences, pieces) or `bars` (sentences, segments) have no column where they were not computed.
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
    """Round values into nested lists, to keep the page small: 4 significant digits of `scale`, or of the
    largest."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if not largest:
        return np.zeros(values.shape, dtype=int).tolist()
    decimals = 3 - math.floor(math.log10(scale or largest))
    return (np.round(values, decimals) + 0.0).tolist()


@dataclass(frozen=True, slots=True)
class Note:
    """A `text` on characters `start` to `end` of the prompt, which contradict the response."""

    start: int
    end: int
    text: str


def contradiction_notes(analysis: Analysis) -> list[Note]:
    """Return notes on the characters of the prompt that contradict the response."""
    notes = []
    for contradiction in (contradiction for span in analysis.spans for contradiction in span.contradictions):
        inside = contradiction.passage, contradiction.passage_start, contradiction.passage_end
        if analysis.excerpt is not None and not analysis.excerpt.reads(*inside[:2]):
            continue  # texts were compared whole
        start, end = inside[1:] if analysis.excerpt is None else analysis.excerpt.within(*inside)
        first, _ = analysis.encoded.spans[FIRST_PASSAGE + contradiction.passage]
        text = f'The response has "{one_line(contradiction.text, VALUE_LENGTH)}"'
        notes.append(Note(first + start, first + end, text))
    return notes


@dataclass(frozen=True, slots=True)
class Shade:
    """Text with its step of shading; None where no token is.

    `texts` are its pieces, each with a note where it contradicts the response. `kind` is "gone" for text that
    truncation dropped, and "break" for line breaks after a passage, which ends its line anyway.
    """

    texts: tuple[tuple[str, str], ...]
    level: int | None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive text of one segment: `kind` is template, question or passage."""

    kind: str
    name: str
    shades: list[Shade] = field(default_factory=list)


def prompt_runs(encoded: Encoded, pieces: list[Piece], view: View, notes: Sequence[Note] = ()) -> list[Run]:
    """Return the prompt's segments in the order of its text, with the notes on its characters."""
    runs: list[Run] = []
    relevance = iter(view.mean if view.mean.size else ())
    for piece in pieces:
        text = encoded.text[piece.start : piece.end]
        texts = tuple(_with_notes(encoded.text, piece, notes))
        if piece.tokens:
            name = encoded.segment_names[encoded.segments[piece.tokens[0]]]
            value = next(relevance, None)
            step = 0 if value is None else level(float(value), view.scale)
            breaks = not text.strip() and "\n" in text and _after_passage(runs, name)
            shade = Shade(texts, step, "break" if breaks else "")
        else:
            name = runs[-1].name if runs else encoded.segment_names[0]
            shade = Shade(texts, None, "gone" if encoded.dropped and text.strip() else "")
        if not runs or runs[-1].name != name:
            runs.append(Run(name.split(" ", maxsplit=1)[0], name))
        runs[-1].shades.append(shade)
    return runs


def _with_notes(text: str, piece: Piece, notes: Sequence[Note]) -> Iterable[tuple[str, str]]:
    """Cut a piece where a note begins or ends; yield each text with its notes."""
    edges = {edge for note in notes for edge in (note.start, note.end) if piece.start < edge < piece.end}
    for start, end in pairwise(sorted({piece.start, piece.end} | edges)):
        words = dict.fromkeys(note.text for note in notes if note.start <= start < note.end)
        yield text[start:end], "; ".join(words)


def _after_passage(runs: list[Run], name: str) -> bool:
    """Say whether only line breaks separate text of segment `name` from a passage before it."""
    if not runs or runs[-1].name == name:
        return (
            len(runs) > 1
            and runs[-2].kind == "passage"
            and all(shade.kind == "break" for shade in runs[-1].shades)
        )
    return runs[-1].kind == "passage"


def response_runs(analysis: Analysis) -> list[tuple[int | None, list[tuple[bool, str]]]]:
    """Return (sentence or None, its (suspect, text) pairs), in the order of the response."""
    response = analysis.encoded.response
    sentences = [(sentence.start, sentence.end) for sentence in analysis.sentences]
    spans = [(span.start, span.end) for span in analysis.spans]
    edges = {0, len(response), *(edge for pair in (*sentences, *spans) for edge in pair)}
    texts = [
        (_holding(sentences, start), (_holding(spans, start) is not None, response[start:end]))
        for start, end in pairwise(sorted(edge for edge in edges if 0 <= edge <= len(response)))
    ]
    groups = groupby(texts, key=lambda text: text[0])
    return [(sentence, [text for _, text in group]) for sentence, group in groups]


def _holding(spans: list[tuple[int, int]], position: int) -> int | None:
    return next((k for k, (start, end) in enumerate(spans) if start <= position < end), None)
