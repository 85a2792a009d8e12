"""`Nearest`: the sentence of the passages that has most of a statement's words. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words, stem
from lrp4rag.util.text import WORD, normal


@dataclass(frozen=True, slots=True)
class Nearest:
    """Characters `start` to `end` of a `passage` (counted from 0).

    `similarity` (0 to 1) is the share of the statement's content words, weighted by rarity, that this
    sentence has; its neighbours count half. `words` are where in the passage it has them.
    """

    passage: int
    start: int
    end: int
    similarity: float
    words: tuple[tuple[int, int], ...]


def nearest(index: Index, passages: Sequence[str], statement: str) -> Nearest | None:
    """Return the most similar sentence of an `index` of these passages; None if none has a word of the
    statement."""
    wanted = content_words(statement)
    similarities = index.similarities(wanted)
    best = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    if best is None or not similarities[best]:
        return None
    place = index.places[best]
    words = tuple(
        match.span()
        for match in WORD.finditer(passages[place.passage], place.start, place.end)
        if stem(normal(match[0].lower())) in wanted
    )
    return Nearest(place.passage, place.start, place.end, similarities[best], words)
