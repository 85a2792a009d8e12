"""What passages say, clause by clause, and which of their clauses say most of what a claim's clause says."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.lexicon import related_words
from lrp4rag.claims.signed import Clause, Word, signed_clauses
from lrp4rag.claims.words import stem
from lrp4rag.util.sentences import sentences_in

Found = TypeVar("Found")

STRENGTH = {"same": 1.0, "synonym": 0.7, "opposite": 0.7}
"""How much of a word one of the same stem, of the same sense, and of the opposite sense has."""
SENTENCE, NEIGHBOUR, TITLE = 0.5, 0.25, 0.15
"""Weight of a word that another clause of the sentence has, a sentence beside it, or the passage's first
one."""
CONTEXT = 0.33
"""Weight of the words of a claim's other clauses."""
_LEAST = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A clause of a passage, and the number of its sentence over all passages."""

    passage: int
    sentence: int
    clause: Clause


@dataclass(frozen=True, slots=True)
class Match:
    """A word of a claim, a word of a passage in its place, their weight, and whether they are opposites."""

    word: Word
    other: Word
    weight: float
    opposite: bool

    @property
    def sign(self) -> int:
        """Return -1 where one denies the other, else 1."""
        return self.word.sign * self.other.sign * (-1 if self.opposite else 1)


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What speaks against characters `start` to `end` of a text: characters `passage_start` to `passage_end`
    of passage `passage`; `weight` (0 to 1) is how sure that is."""

    start: int
    end: int
    passage: int
    passage_start: int
    passage_end: int
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The clauses of passages by how much of a claim's clause they say: `scores` (clauses,), 0 to 1, and the
    same of the words that any passage has (`known`); the share of the weight of those that none has
    (`missing`); and the numbers of the clauses, the best first."""

    scores: NDArray[np.float64]
    known: NDArray[np.float64]
    missing: float
    order: tuple[int, ...]

    def sentences(self, grounds: Grounds, most: int) -> list[tuple[int, float]]:
        """Return the best sentences that have a word, at most so many, and the `known` of each."""
        best: dict[int, float] = {}
        for place in self.order:
            if len(best) == most or self.known[place] <= 0:
                break
            best.setdefault(grounds.placed[place].sentence, float(self.known[place]))
        return list(best.items())


class Grounds:
    """The clauses of passages, and the words of the question that they are to answer."""

    def __init__(self, question: str, passages: Sequence[str]) -> None:
        self.passages = tuple(passages)
        self.sentences: list[tuple[int, int, int]] = []
        """Passage, start and end of each sentence."""
        self.placed: list[Placed] = []
        self.of_sentence = defaultdict[int, list[int]](list)
        for number, passage in enumerate(passages):
            for start, end in sentences_in(passage):
                for clause in signed_clauses(passage, start, end):
                    self.of_sentence[len(self.sentences)].append(len(self.placed))
                    self.placed.append(Placed(number, len(self.sentences), clause))
                self.sentences.append((number, start, end))
        self._standing = defaultdict[str, list[int]](list)
        self._by_stem = defaultdict[str, set[str]](set)
        for number, placed in enumerate(self.placed):
            for word in placed.clause.content:
                self._standing[word.base].append(number)
                self._by_stem[stem(word.base)].add(word.base)
        self._sentence_of = np.array([placed.sentence for placed in self.placed], int)
        self._passage_of = np.array([placed.passage for placed in self.placed], int)
        self._related: dict[str, dict[str, float]] = {}
        self._aligned: dict[tuple[frozenset[str], frozenset[str]], Alignment] = {}
        self._found: dict[tuple[object, int], object] = {}
        self.asked = tuple(word for clause in signed_clauses(question) for word in clause.content)

    def rarity(self, base: str) -> float:
        """Inverse document frequency over sentences; of a word that none has, that of the rarest."""
        sentences = {int(self._sentence_of[place]) for place in self._standing.get(base, ())}
        return math.log((len(self.sentences) + 1) / (max(len(sentences), 1) + 0.5)) + _LEAST

    def weight(self, base: str) -> float:
        """Return the rarity of the rarest word of the passages in a word's place, its own where none is."""
        return max((self.rarity(other) for other in self.related(base)), default=self.rarity(base))

    def related(self, base: str) -> dict[str, float]:
        """Return the words of the passages in the place of one: their strength, below zero if opposite."""
        if base not in self._related:
            found = dict.fromkeys(self._by_stem.get(stem(base), ()), STRENGTH["same"])
            for other, kind in related_words(base).items():
                if other in self._standing and other != base:
                    strength = -STRENGTH[kind] if kind == "opposite" else found.get(other, STRENGTH[kind])
                    found[other] = strength
            self._related[base] = found
        return self._related[base]

    def aligned(self, words: Collection[Word], context: Collection[Word] = ()) -> Alignment:
        """Align the words of a clause; `context` are others of its sentence."""
        key = frozenset(word.base for word in words), frozenset(word.base for word in context)
        if key not in self._aligned:
            self._aligned[key] = self._align(*key)
        return self._aligned[key]

    def _align(self, words: frozenset[str], context: frozenset[str]) -> Alignment:
        scores = np.zeros(len(self.placed))
        total = missing = 0.0
        weighted = [(base, 1.0) for base in sorted(words)] + [(base, CONTEXT) for base in sorted(context)]
        for base, share in weighted:
            weight = share * self.weight(base)
            total += weight
            if related := self.related(base):
                scores += weight * self._presence(related)
            else:
                missing += weight
        total = max(total, 1e-9)
        known = scores / max(total - missing, 1e-9)
        order = tuple(int(place) for place in np.argsort(-scores, kind="stable"))
        return Alignment(scores / total, known, missing / total, order)

    def _presence(self, related: dict[str, float]) -> NDArray[np.float64]:
        """Return how much of a word each clause has, given those in its place: (clauses,)."""
        presence = np.zeros(len(self.placed))
        for other, strength in related.items():
            for place in self._standing[other]:
                presence[place] = max(presence[place], abs(strength))
        by_sentence = np.zeros(len(self.sentences))
        np.maximum.at(by_sentence, self._sentence_of, presence)
        passage_of = np.array([passage for passage, *_ in self.sentences])
        same = passage_of[1:] == passage_of[:-1]
        beside = np.zeros(len(self.sentences))
        beside[1:] = np.where(same, by_sentence[:-1], 0)
        beside[:-1] = np.maximum(beside[:-1], np.where(same, by_sentence[1:], 0))
        first = np.concatenate(([True], ~same))
        titles = np.zeros(len(self.passages))
        titles[passage_of[first]] = by_sentence[first]
        wide = np.maximum(SENTENCE * by_sentence, NEIGHBOUR * beside)[self._sentence_of]
        spread: NDArray[np.float64] = np.maximum(np.maximum(presence, wide), TITLE * titles[self._passage_of])
        return spread

    def words_of(self, sentence: int) -> list[Word]:
        """Return the content words of a sentence of the passages."""
        return [word for place in self.of_sentence[sentence] for word in self.placed[place].clause.content]

    def matches(self, words: Sequence[Word], others: Sequence[Word]) -> list[Match]:
        """Match words of a claim, each with that of the passages' words which is most in its place."""
        found = []
        for word in words:
            related = self.related(word.base)
            pairs = [(related[other.base], other) for other in others if other.base in related]
            if pairs:
                strength, other = max(pairs, key=lambda pair: abs(pair[0]))
                found.append(Match(word, other, abs(strength) * self.rarity(other.base), strength < 0))
        return found

    def found(self, find: Callable[[str, int, int], Found], sentence: int) -> Found:
        """Return what `find` finds in a sentence (a text and its characters there), looked for once."""
        key = (find, sentence)
        if key not in self._found:
            passage, start, end = self.sentences[sentence]
            self._found[key] = find(self.passages[passage], start, end)
        return self._found[key]  # type: ignore[return-value]

    def text(self, sentence: int) -> str:
        """Return the text of a sentence of the passages."""
        passage, start, end = self.sentences[sentence]
        return self.passages[passage][start:end]
