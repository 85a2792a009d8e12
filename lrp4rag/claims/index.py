"""`Index`: the sentences of the passages that are most like a statement, with their values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lrp4rag.claims.find import find_values
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words
from lrp4rag.util.sentences import sentences_in

_COMPARED = 200
"""Rivals that a further one is compared with, at most."""
NEIGHBOUR = 0.5
"""Weight of a word that stands in the sentence before or after."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A sentence of a passage (counted from 0): its characters there, its content words, and its values,
    whose characters are the passage's."""

    passage: int
    start: int
    end: int
    words: frozenset[str]
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A value in a passage, and how similar its surroundings are to those asked for (0 to 1)."""

    value: Value
    passage: int
    similarity: float


class Index:
    """The sentences of passages, and how rare their words are among them."""

    def __init__(self, passages: Sequence[str]) -> None:
        context = Surroundings(" ".join(passages))
        self.places = [
            _place(number, passage, span, context)
            for number, passage in enumerate(passages)
            for span in sentences_in(passage)
        ]
        self._frequency = Counter(word for place in self.places for word in place.words)

    def rarity(self, word: str) -> float:
        """Inverse document frequency over sentences; highest for a word that no passage has."""
        return math.log((len(self.places) + 1) / (self._frequency[word] + 0.5))

    def similarities(self, words: Iterable[str]) -> list[float]:
        """Return the proportion of the content words that each place has, 0 to 1, weighted by rarity; its
        neighbours count half. The order of the words, which sets do not have, makes no difference."""
        wanted = {word: max(self.rarity(word), 0.1) for word in words}
        total = math.fsum(wanted.values())
        if not total:
            return [0.0] * len(self.places)
        return [
            math.fsum(weight * self._presence(word, number) for word, weight in wanted.items()) / total
            for number in range(len(self.places))
        ]

    def occurrences(self, value: Value, similarities: Sequence[float]) -> list[Occurrence]:
        """Return all comparable values of the passages, the most similar surroundings first."""
        occurrences = [
            Occurrence(candidate, place.passage, similarity)
            for place, similarity in zip(self.places, similarities, strict=True)
            for candidate in place.values
            if comparable(value, candidate)
        ]
        return sorted(occurrences, key=lambda candidate: -candidate.similarity)

    def _presence(self, word: str, number: int) -> float:
        if word in self.places[number].words:
            return 1.0
        passage = self.places[number].passage
        for neighbour in (number - 1, number + 1):
            near = 0 <= neighbour < len(self.places) and self.places[neighbour].passage == passage
            if near and word in self.places[neighbour].words:
                return NEIGHBOUR
        return 0.0


def support(value: Value, occurrences: Sequence[Occurrence]) -> float:
    """Return the highest similarity of an occurrence that agrees; 0 for none."""
    return max(
        (occurrence.similarity for occurrence in occurrences if agree(value, occurrence.value)), default=0.0
    )


def rivals(value: Value, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
    """Occurrences that do not agree, each value once, the most similar first."""
    distinct: list[Occurrence] = []
    amounts = set[str]()
    for occurrence in occurrences:
        if agree(value, occurrence.value):
            continue
        if value.kind == "quantity":  # of which a table may have thousands
            amount = f"{occurrence.value.unit} {occurrence.value.amount:.4g}"
            if amount not in amounts:
                amounts.add(amount)
                distinct.append(occurrence)
        elif not any(agree(occurrence.value, rival.value) for rival in distinct[:_COMPARED]):
            distinct.append(occurrence)
    return distinct


def _place(number: int, passage: str, span: tuple[int, int], context: Surroundings) -> Place:
    start, end = span
    text = passage[start:end]
    values = tuple(value.shifted(start) for value in find_values(text, context))
    return Place(number, start, end, content_words(text), values)
