"""`Places`: which sentence of the passages one of the answer rests on, by their words and values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from lrp4rag.claims.index import Index, Place
from lrp4rag.claims.value import Value, agree
from lrp4rag.util.text import encodable

FREQUENT = 200
"""A word is looked up in so many sentences at most: what stands in more tells few apart."""
LOOKED_AT = 5
"""Sentences whose values are compared, those with the most words first."""
ENOUGH = 0.3
"""The share of a statement's words, weighted by rarity, in the sentence that it rests on, at least."""


class Places:
    """The sentences of passages by their words: a look-up costs no more where there are many."""

    def __init__(self, passages: Sequence[str], tick: Callable[[], None]) -> None:
        self._passages = [encodable(passage) for passage in passages]
        self.index = Index(self._passages)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, place in enumerate(self.index.places):
            tick()
            for word in place.words:
                if len(self._by_word[word]) < FREQUENT:
                    self._by_word[word].append(number)

    def text(self, place: Place) -> str:
        return self._passages[place.passage][place.start : place.end]

    def resting(
        self, words: Iterable[str], values: Sequence[Value] = (), passage: int | None = None
    ) -> list[tuple[int, float]]:
        """Return the numbers of the sentences of the passages (or of the one) that some words and values rest
        on, and which share of the words each has, the best first; none where none has `ENOUGH`."""
        wanted = {word: max(self.index.rarity(word), 0.1) for word in sorted(words)}
        total = sum(wanted.values())
        shares: dict[int, float] = defaultdict(float)
        for word, weight in wanted.items():
            for number in self._by_word.get(word, ()):
                if passage is None or self.index.places[number].passage == passage:
                    shares[number] += weight / total
        best = sorted(shares, key=lambda number: (-shares[number], number))[:LOOKED_AT]
        places = self.index.places
        agreed = {number: _agreed(places[number], values) for number in best}
        best.sort(key=lambda number: -(shares[number] + agreed[number]))
        return [(number, shares[number]) for number in best if shares[number] + agreed[number] >= ENOUGH]


def _agreed(place: Place, values: Sequence[Value]) -> float:
    """Return the share of some values that a sentence has too; 0 of none."""
    if not values:
        return 0.0
    return sum(any(agree(one, value) for one in place.values) for value in values) / len(values)
