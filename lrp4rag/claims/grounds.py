"""`Grounds`: what passages say, clause by clause, and which clauses say most of a claim's clause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.index import Index
from lrp4rag.claims.lexicon import related_words
from lrp4rag.claims.lookup import Lookup
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import Clause, Word, signed_clauses
from lrp4rag.claims.words import stem

STRENGTH = {"same": 1.0, "synonym": 0.7, "opposite": 0.7}
"""How much of a word one of the same stem, of the same sense, and of the opposite sense has."""
SENTENCE, NEIGHBOUR, TITLE = 0.5, 0.25, 0.15
"""Weight of a word that another clause of the sentence has, a sentence beside it, or the passage's first
one."""
CONTEXT = 0.33
"""Weight of the words of a claim's other clauses."""
_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class Match:
    """A word of a claim, a word of a passage in its place, their weight, and whether they are opposites."""

    word: Word
    passage_word: Word
    weight: float
    opposite: bool

    @property
    def sign(self) -> int:
        """Return -1 where one denies the other, else 1."""
        return self.word.sign * self.passage_word.sign * (-1 if self.opposite else 1)


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Characters `start` to `end` of a text, and what speaks against them: characters `passage_start` to
    `passage_end` of passage `passage`; `weight` (0 to 1) is how sure that is."""

    start: int
    end: int
    passage: int
    passage_start: int
    passage_end: int
    weight: float

    def instead(self, passages: Sequence[str]) -> str:
        """Return the words of the passage that speak against the text's."""
        return passages[self.passage][self.passage_start : self.passage_end]


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The clauses of passages by how much of a claim's clause they say: `scores` (clauses,), 0 to 1, and the
    same of the words that any passage has (`known_scores`); the share of the weight of those that none has
    (`missing`); the numbers of the clauses, the best first, and the sentence of each of these."""

    scores: NDArray[np.float64]
    known_scores: NDArray[np.float64]
    missing: float
    order: Sequence[int]
    places: Sequence[Place]

    def sentences(self, most: int) -> list[tuple[Place, float]]:
        """Return the best sentences that have a word, at most so many, and the `known_scores` of each."""
        best: dict[Place, float] = {}
        for clause, place in zip(self.order, self.places, strict=True):
            if len(best) == most or self.known_scores[clause] <= 0:
                break
            best.setdefault(place, float(self.known_scores[clause]))
        return list(best.items())


class Grounds:
    """The clauses of the sentences of passages, and the words of the question that they are to answer."""

    def __init__(self, question: str, index: Index) -> None:
        self._places = index.places
        pairs = [(number, clause) for number, place in enumerate(index.places) for clause in place.clauses]
        self.clauses: list[Clause] = [clause for _, clause in pairs]
        words = ([word.base for word in clause.content] for clause in self.clauses)
        self._lookup = Lookup(index.places, (number for number, _ in pairs), words)
        self._by_stem = defaultdict[str, set[str]](set)
        for base in self._lookup.standing:
            self._by_stem[stem(base)].add(base)
        self._rarities: dict[str, float] = {}
        self._related: dict[str, dict[str, float]] = {}
        self._presence: dict[str, NDArray[np.float64]] = {}
        self._aligned: dict[tuple[frozenset[str], frozenset[str]], Alignment] = {}
        self.question_words = tuple(word for clause in signed_clauses(question) for word in clause.content)

    def rarity(self, base: str) -> float:
        """Return the inverse document frequency over sentences; of a word that none has, that of the
        rarest."""
        if base not in self._rarities:
            having = self._lookup.having(self._lookup.standing.get(base, ()))
            self._rarities[base] = self._lookup.idf(max(having, 1)) + _LEAST
        return self._rarities[base]

    def weight(self, base: str) -> float:
        """Return the rarity of the rarest word of the passages in a word's place, or else its own."""
        return max((self.rarity(word) for word in self.related(base)), default=self.rarity(base))

    def related(self, base: str) -> dict[str, float]:
        """Return the words of the passages that may stand in the place of a word, with their strength: below
        zero if opposite."""
        if base not in self._related:
            related = dict.fromkeys(self._by_stem.get(stem(base), ()), STRENGTH["same"])
            for word, kind in related_words(base).items():
                if word in self._lookup.standing and word != base:
                    strength = STRENGTH[kind]
                    related[word] = -strength if kind == "opposite" else related.get(word, strength)
            self._related[base] = related
        return self._related[base]

    def aligned(self, words: Iterable[Word], context: Iterable[Word] = ()) -> Alignment:
        """Align the words of a clause; `context` are others of its sentence."""
        key = frozenset(word.base for word in words), frozenset(word.base for word in context)
        if key not in self._aligned:
            self._aligned[key] = self._align(*key)
        return self._aligned[key]

    def _align(self, words: Collection[str], context: Collection[str]) -> Alignment:
        scores = np.zeros(len(self.clauses))
        total = missing = 0.0
        weighted = [(base, 1.0) for base in sorted(words)] + [(base, CONTEXT) for base in sorted(context)]
        for base, share in weighted:
            weight = share * self.weight(base)
            total += weight
            if self.related(base):
                scores += weight * self.presence(base)
            else:
                missing += weight
        total = max(total, 1e-9)
        known_scores = scores / max(total - missing, 1e-9)
        order = np.argsort(-scores, kind="stable")
        places = [self._places[sentence] for sentence in self._lookup.sentences[order].tolist()]
        return Alignment(scores / total, known_scores, missing / total, order.tolist(), places)

    def presence(self, base: str) -> NDArray[np.float64]:
        """Return how much of a word, or of one in its place, each clause has: (clauses,)."""
        if base not in self._presence:
            strengths = {word: abs(strength) for word, strength in self.related(base).items()}
            exact = self._lookup.exact(strengths)
            self._presence[base] = self._lookup.spread(exact, SENTENCE, NEIGHBOUR, TITLE, "first")
        return self._presence[base]

    def matches(self, words: Iterable[Word], candidates: Sequence[Word]) -> list[Match]:
        """Match each word of a claim with the candidate of the passages' words that is most like it or most
        opposite to it."""
        matches = []
        for word in words:
            related = self.related(word.base)
            pairs = [
                (related[candidate.base], candidate) for candidate in candidates if candidate.base in related
            ]
            if pairs:
                strength, candidate = max(pairs, key=lambda pair: abs(pair[0]))
                matches.append(
                    Match(word, candidate, abs(strength) * self.rarity(candidate.base), strength < 0)
                )
        return matches
