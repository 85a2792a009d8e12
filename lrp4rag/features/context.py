"""`Context`: what a response is compared with, as the prompt has it: the passages, their index, the
question."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words, stem
from lrp4rag.reader.encoding import Encoded
from lrp4rag.util.text import words_of

Gram = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """`passages` are the texts as they were given, some perhaps empty; `asked` are the content words of the
    question.

    `grams` are the stems of the passages, and their pairs and threes in a row; `words` those of each passage,
    and `stems` those of each place of the `index`.
    """

    passages: tuple[str, ...]
    asked: frozenset[str]
    index: Index
    grams: frozenset[Gram]
    words: tuple[frozenset[str], ...]
    stems: tuple[frozenset[str], ...]


def context_of(encoded: Encoded) -> Context:
    """That of a prompt, for all responses to it."""
    passages = encoded.passages
    index = Index(passages)
    rows = [_stems(passage) for passage in passages]
    grams: set[Gram] = set()
    for row in rows:
        grams.update(row, itertools.pairwise(row), zip(row, row[1:], row[2:], strict=False))
    places = (_stems(passages[one.passage][one.start : one.end]) for one in index.places)
    return Context(
        passages,
        content_words(encoded.question),
        index,
        frozenset(grams),
        tuple(map(frozenset, rows)),
        tuple(map(frozenset, places)),
    )


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words_of(text)]
