"""A recursive chunker: pieces of a text of at most so many tokens, cut at the coarsest places that do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lrp4rag.util.sentences import sentences_in

Span = tuple[int, int]
Starts = Callable[[str], Sequence[int]]
"""Where each token of a text starts, in characters, rising."""


def word_starts(text: str) -> list[int]:
    """Words count as tokens."""
    return [match.start() for match in re.finditer(r"\S+", text)]


def _between(pattern: str) -> Callable[[str], list[int]]:
    return lambda text: [match.end() for match in re.finditer(pattern, text)]


CUTS: tuple[Callable[[str], list[int]], ...] = (
    _between(r"\n\s*\n"),  # paragraphs
    _between(r"\n"),  # lines
    lambda text: [start for start, _ in sentences_in(text)],
    _between(r"[,;:)]\s+|\s[-\u2013\u2014]\s"),  # clauses
    _between(r"\s+"),  # words
)
"""Where a text may be cut, the coarsest places first."""


@dataclass(frozen=True, slots=True)
class Chunker:
    """Pieces have at most `longest` tokens, or are a single word. One begins with those of the last parts of
    the piece before it that have at most `overlap` tokens together: a whole sentence, clause or word."""

    starts: Starts
    longest: int
    overlap: int = 0

    def __call__(self, text: str) -> list[Span]:
        """Characters of each piece, without the white space around it."""
        places = np.asarray(self.starts(text), dtype=np.intp)
        found = []
        for start, end in _chunks(text, (0, len(text)), 0, places, self):
            if piece := text[start:end].strip():
                first = text.index(piece[0], start)
                found.append((first, first + len(piece)))
        return found


def tokens_of(span: Span, places: NDArray[np.intp]) -> int:
    """How many tokens start within a span."""
    first, last = np.searchsorted(places, span)
    return int(last - first)


def _chunks(text: str, span: Span, level: int, places: NDArray[np.intp], chunker: Chunker) -> list[Span]:
    if tokens_of(span, places) <= chunker.longest or level == len(CUTS):
        return [span]
    made: list[Span] = []
    held: list[Span] = []
    for part in _parts(text, span, CUTS[level]):
        if tokens_of(part, places) <= chunker.longest:
            held.append(part)
        else:
            made += _merged(held, places, chunker) + _chunks(text, part, level + 1, places, chunker)
            held = []
    return made + _merged(held, places, chunker)


def _parts(text: str, span: Span, cuts: Callable[[str], list[int]]) -> list[Span]:
    """The span, cut where it may be; each part keeps the white space after it."""
    start, end = span
    inside = {start + cut for cut in cuts(text[start:end])} - {start, end}
    edges = [start, *sorted(inside), end]
    return list(pairwise(edges))


def _merged(parts: Sequence[Span], places: NDArray[np.intp], chunker: Chunker) -> list[Span]:
    """Neighbouring parts together, as many as fit."""
    made: list[Span] = []
    first = 0
    for k, (_, end) in enumerate(parts):
        if tokens_of((parts[first][0], end), places) > chunker.longest:
            made.append((parts[first][0], parts[k - 1][1]))
            first = next(
                j
                for j in range(first + 1, k + 1)
                if tokens_of((parts[j][0], parts[k - 1][1]), places) <= chunker.overlap
                and tokens_of((parts[j][0], end), places) <= chunker.longest
            )
    return [*made, (parts[first][0], parts[-1][1])] if parts else made
