"""`Lookup`: which clauses of passages have a word, and what stands around them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.places import Place

Array = NDArray[np.float64]


class Lookup:
    """Clauses of passages by their words. Clause k stands in the sentence `sentences[k]` of the `places`, in
    their order, and has `words[k]`."""

    def __init__(
        self, places: Sequence[Place], sentences: Iterable[int], words: Iterable[Iterable[str]]
    ) -> None:
        self.places = places
        self.sentences = np.array([*sentences], int)
        of_places = np.array([place.passage for place in places], int)
        self.passages = of_places[self.sentences]
        """The passage of each clause."""
        self.standing = defaultdict[str, list[int]](list)
        """The clauses that have a word."""
        for number, inside in enumerate(words):
            for word in inside:
                self.standing[word].append(number)
        self._beside = of_places[1:] == of_places[:-1]
        self._first = np.flatnonzero(np.diff(of_places, prepend=-1))
        self._group = np.searchsorted(self._first, self.sentences, "right") - 1

    def idf(self, sentences: int) -> float:
        """Return the inverse document frequency of what so many sentences have."""
        return math.log((len(self.places) + 1) / (sentences + 0.5))

    def having(self, clauses: Sequence[int] | NDArray[np.bool_]) -> int:
        """Return the number of sentences that some clauses, or those of a mask, stand in."""
        return len(set(self.sentences[clauses].tolist())) if len(clauses) else 0

    def exact(self, words: Mapping[str, float]) -> Array:
        """Return the highest weight of some words in each clause: (clauses,)."""
        weights = np.zeros(len(self.sentences))
        for word, weight in sorted(words.items(), key=lambda pair: pair[1]):
            if word in self.standing:
                weights[self.standing[word]] = weight
        return weights

    def spread(
        self,
        exact: Array,
        sentence: float | Array,
        neighbour: float,
        passage: float,
        of_passage: Literal["best", "first"] = "best",
    ) -> Array:
        """Return what clauses have by themselves, or with these weights by their sentence, by a sentence
        beside it, and by the best or the first sentence of their passage: (clauses,)."""
        if not exact.any():
            return exact
        sentences = np.zeros(len(self.places))
        np.maximum.at(sentences, self.sentences, exact)
        beside = np.zeros(len(self.places))
        beside[1:] = sentences[:-1] * self._beside
        beside[:-1] = np.maximum(beside[:-1], sentences[1:] * self._beside)
        if of_passage == "best":
            passages = np.maximum.reduceat(sentences, self._first)
        else:
            passages = sentences[self._first]
        near = np.maximum(sentence * sentences[self.sentences], neighbour * beside[self.sentences])
        return np.asarray(np.maximum(np.maximum(exact, near), passage * passages[self._group]))
