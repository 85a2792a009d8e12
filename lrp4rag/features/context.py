"""`Context`: what a response is compared with, as the prompt has it: the passages, their index, the
question."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words, stem
from lrp4rag.reader.encoding import Encoded
from lrp4rag.util.text import words_of

Gram = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """`passages` are texts, some perhaps empty, which begin at the prompt's characters `starts`; `asked`
    are the content words of the question.

    `grams` are the stems of the passages, and their pairs and threes in a row; `words` those of each passage,
    and `stems` those of each place of the `index`.
    """

    passages: tuple[str, ...]
    starts: tuple[int, ...]
    asked: frozenset[str]
    index: Index
    grams: frozenset[Gram]
    words: tuple[frozenset[str], ...]
    stems: tuple[frozenset[str], ...]


def context_of(encoded: Encoded) -> Context:
    """That of a prompt; it is kept for the next response to the same prompt."""
    return _context(encoded.text, encoded.prompt_offsets, encoded.segments, len(encoded.segment_names))


@lru_cache(maxsize=4)
def _context(
    text: str, offsets: tuple[tuple[int, int], ...], segments: tuple[int, ...], count: int
) -> Context:
    parts = _parts(offsets, segments, count)[1:]
    starts = tuple(start for start, _ in parts[1:])
    question, *passages = (text[start:end] for start, end in parts)
    index = Index(passages)
    rows = [_stems(passage) for passage in passages]
    grams: set[Gram] = set()
    for row in rows:
        grams.update(row, itertools.pairwise(row), zip(row, row[1:], row[2:], strict=False))
    places = (_stems(passages[one.passage][one.start : one.end]) for one in index.places)
    return Context(
        tuple(passages),
        starts,
        content_words(question),
        index,
        frozenset(grams),
        tuple(map(frozenset, rows)),
        tuple(map(frozenset, places)),
    )


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words_of(text)]


def _parts(
    offsets: tuple[tuple[int, int], ...], segments: tuple[int, ...], count: int
) -> list[tuple[int, int]]:
    """The characters from the first to the last token of each segment; none of one without tokens."""
    parts: list[tuple[int, int] | None] = [None] * count
    for (start, end), number in zip(offsets, segments, strict=True):
        first, last = parts[number] or (start, end)
        parts[number] = min(first, start), max(last, end)
    return [part or (0, 0) for part in parts]
