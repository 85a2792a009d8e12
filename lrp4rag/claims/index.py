"""`Index`: the sentences of the passages that are most like a statement, with their values."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lrp4rag.claims.lookup import Lookup
from lrp4rag.claims.places import Place, places_of
from lrp4rag.claims.polarity import opposed
from lrp4rag.claims.value import Value, agree, comparable

_COMPARED = 200
"""Rivals that a further one is compared with, at most."""
CLOSEST = 4
"""Places that a clause or sentence is compared with word by word: those that have most of its words."""
FREQUENT = 200
"""Places in which a word is looked up, at most: a word in more places tells few of them apart."""
PARTNERS = 60
"""Sentences that one is aligned with, at most: those that share most with it."""
LOOKED_AT = 5
"""Places whose values are compared, those with the most words first."""
ENOUGH = 0.3
"""The share of a statement's words, weighted by rarity, in the place that it rests on, at least."""
NEIGHBOUR = 0.5
"""Weight of a word that stands in the sentence before or after."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A value in a passage, and how similar its surroundings are to those asked for (0 to 1)."""

    value: Value
    passage: int
    similarity: float


class Index(Lookup):
    """The sentences of passages, and how rare their words are among them; `words` are those of a place."""

    def __init__(
        self,
        passages: Sequence[str],
        tick: Callable[[], None] = lambda: None,
        words: Callable[[Place], Iterable[str]] = attrgetter("words"),
    ) -> None:
        self.texts, self._words = tuple(passages), words
        places = places_of(passages, tick)
        super().__init__(places, range(len(places)), map(words, places))

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency over sentences; the highest for a word that no passage
        has."""
        return self.idf(len(self.standing.get(word, ())))

    def weights(self, words: Iterable[str]) -> dict[str, float]:
        """Return the rarities of words, of which none counts for nothing."""
        return {word: max(self.rarity(word), 0.1) for word in words}

    def similarities(self, words: Iterable[str]) -> list[float]:
        """Return the proportion of the content words that each place has, 0 to 1, weighted by rarity; its
        neighbours count half. The order of the words, which sets do not have, makes no difference."""
        wanted = self.weights(words)
        total, similarities = math.fsum(wanted.values()), [0.0] * len(self.places)
        parts = defaultdict[int, list[float]](list)
        for word, weight in wanted.items():
            for number, presence in self._presence(word).items():
                parts[number].append(weight * presence)
        for number, weights in parts.items():
            similarities[number] = math.fsum(weights) / total
        return similarities

    def closest(self, words: Iterable[str]) -> list[tuple[int, float]]:
        """Return the numbers of the `CLOSEST` places by these similarities, the best first, and those."""
        similarities = self.similarities(words)
        best = sorted(range(len(similarities)), key=lambda number: -similarities[number])[:CLOSEST]
        return [(number, similarities[number]) for number in best]

    def shares(self, words: Iterable[str]) -> dict[int, float]:
        """Return the proportion of the words that places have themselves, without their neighbours. A word is
        looked up in `FREQUENT` places at most."""
        wanted = {word: 0.5 + self.rarity(word) for word in sorted(words)}
        total = sum(wanted.values())
        shares: dict[int, float] = defaultdict(float)
        for word, weight in wanted.items():
            for number in self.standing.get(word, ())[:FREQUENT]:
                shares[number] += weight / total
        return shares

    def aligned(self, share: float, tick: Callable[[], None]) -> list[tuple[Place, Place]]:
        """Return the pairs of sentences of two passages, the earlier first, in which at least `share` of the
        words of either, by rarity, are the other's too. Headings and numbers, which are what may differ, do
        not count."""
        pairs = set[tuple[int, int]]()
        for number, place in enumerate(self.places):
            tick()
            shares = self.shares(
                word for word in self._words(place) if word.isalpha() and not place.is_heading
            )
            candidates = (k for k in shares if self.places[k].passage != place.passage)
            best = sorted(candidates, key=lambda k: (-shares[k], k))[:PARTNERS]
            partners = (k for k in best if shares[k] >= share and not self.places[k].is_heading)
            pairs |= {(min(number, k), max(number, k)) for k in partners}
        return [(self.places[first], self.places[second]) for first, second in sorted(pairs)]

    def resting(
        self, words: Iterable[str], values: Sequence[Value] = (), passage: int | None = None
    ) -> list[int]:
        """Return the numbers of the places of the passages (or of one `passage`) that some words and values
        rest on, the best first; places with less than `ENOUGH` are left out."""
        shares = {
            number: share
            for number, share in self.shares(words).items()
            if passage is None or self.places[number].passage == passage
        }
        best = sorted(shares, key=lambda number: (-shares[number], number))[:LOOKED_AT]
        scores = {number: shares[number] + self._agreed(number, values) for number in best}
        return sorted(
            (number for number in best if scores[number] >= ENOUGH), key=lambda number: -scores[number]
        )

    def _agreed(self, number: int, values: Sequence[Value]) -> float:
        """Return the share of some values that a place has too; 0 of none."""
        candidates = self.places[number].values
        agreed = sum(any(agree(candidate, value) for candidate in candidates) for value in values)
        return agreed / max(len(values), 1)

    def occurrences(self, value: Value, similarities: Sequence[float]) -> list[Occurrence]:
        """Return all comparable values of the passages, the most similar surroundings first."""
        occurrences = [
            Occurrence(candidate, place.passage, similarity)
            for place, similarity in zip(self.places, similarities, strict=True)
            for candidate in place.values
            if comparable(value, candidate)
        ]
        return sorted(occurrences, key=lambda candidate: -candidate.similarity)

    def polarity(self, value: Value, similarities: Sequence[float]) -> tuple[float, Occurrence | None]:
        """Return how similar the best place with the same word is, 0 for none, and the best place with its
        opposite."""
        same, best = 0.0, None
        for place, similarity in zip(self.places, similarities, strict=True):
            for candidate in place.values:
                if candidate.kind == "polarity" and candidate.key == value.key:
                    same = max(same, similarity)
                elif opposed(value, candidate) and (best is None or similarity > best.similarity):
                    best = Occurrence(candidate, place.passage, similarity)
        return same, best

    def _presence(self, word: str) -> dict[int, float]:
        """Return how much of a word the places have that have it, or a neighbour in their passage."""
        standing = self.standing.get(word, ())
        near = (neighbour for number in standing for neighbour in self.beside(number))
        return dict.fromkeys(near, NEIGHBOUR) | dict.fromkeys(standing, 1.0)

    def beside(self, number: int) -> list[int]:
        """Return the places before and after one, those of its passage."""
        passage = self.places[number].passage
        neighbours = (k for k in (number - 1, number + 1) if 0 <= k < len(self.places))
        return [k for k in neighbours if self.places[k].passage == passage]


def support(value: Value, occurrences: Sequence[Occurrence]) -> float:
    """Return the highest similarity of an occurrence that agrees; 0 for none."""
    return max(
        (occurrence.similarity for occurrence in occurrences if agree(value, occurrence.value)), default=0.0
    )


def rivals(value: Value, occurrences: Sequence[Occurrence]) -> list[Occurrence]:
    """Return the occurrences that do not agree, each value once, the most similar first."""
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
