"""`Index`: the sentences of the passages that are most like a statement, with their values."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lrp4rag.claims.find import find_values
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words
from lrp4rag.util.sentences import sentences_in

_COMPARED = 200
"""Rivals that a further one is compared with, at most."""
NEIGHBOUR = 0.5
"""Weight of a word that stands in the sentence before or after."""


@dataclass(frozen=True, eq=False)
class Place:
    """A sentence of a passage (counted from 0): its characters there, its `text` and its content words."""

    passage: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    around: Surroundings = field(repr=False)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Its values, whose characters are the passage's; they are looked for when asked for, since that
        takes longer than all else."""
        return tuple(value.shifted(self.start) for value in find_values(self.text, self.around))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A value in a passage, and how similar its surroundings are to those asked for (0 to 1)."""

    value: Value
    passage: int
    similarity: float


class Index:
    """The sentences of passages, and how rare their words are among them."""

    def __init__(self, passages: Sequence[str]) -> None:
        around = Surroundings(" ".join(passages))
        self.places = [
            Place(number, start, end, passage[start:end], content_words(passage[start:end]), around)
            for number, passage in enumerate(passages)
            for start, end in sentences_in(passage)
        ]
        self._standing = defaultdict[str, list[int]](list)
        for number, place in enumerate(self.places):
            for word in place.words:
                self._standing[word].append(number)

    def rarity(self, word: str) -> float:
        """Inverse document frequency over sentences; highest for a word that no passage has."""
        return math.log((len(self.places) + 1) / (len(self._standing.get(word, ())) + 0.5))

    def similarities(self, words: Iterable[str]) -> list[float]:
        """Return the proportion of the content words that each place has, 0 to 1, weighted by rarity; its
        neighbours count half. The order of the words, which sets do not have, makes no difference."""
        wanted = {word: max(self.rarity(word), 0.1) for word in words}
        total, similarities = math.fsum(wanted.values()), [0.0] * len(self.places)
        parts = defaultdict[int, list[float]](list)
        for word, weight in wanted.items():
            for number, presence in self._presence(word).items():
                parts[number].append(weight * presence)
        for number, weights in parts.items():
            similarities[number] = math.fsum(weights) / total
        return similarities

    def occurrences(self, value: Value, similarities: Sequence[float]) -> list[Occurrence]:
        """Return all comparable values of the passages, the most similar surroundings first."""
        occurrences = [
            Occurrence(candidate, place.passage, similarity)
            for place, similarity in zip(self.places, similarities, strict=True)
            for candidate in place.values
            if comparable(value, candidate)
        ]
        return sorted(occurrences, key=lambda candidate: -candidate.similarity)

    def _presence(self, word: str) -> dict[int, float]:
        """Return how much of a word the places have that have it, or a neighbour in their passage."""
        standing = self._standing.get(word, ())
        near = (neighbour for number in standing for neighbour in self.beside(number))
        return dict.fromkeys(near, NEIGHBOUR) | dict.fromkeys(standing, 1.0)

    def beside(self, number: int) -> list[int]:
        """Return the places before and after one, those of its passage."""
        passage = self.places[number].passage
        numbers = (one for one in (number - 1, number + 1) if 0 <= one < len(self.places))
        return [one for one in numbers if self.places[one].passage == passage]


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
