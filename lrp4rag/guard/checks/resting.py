"""Which of some passages a sentence of an answer rests on, rather than on any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lrp4rag.claims import Value, agree, find_values
from lrp4rag.claims.words import stem
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.facts.clauses import Span
from lrp4rag.guard.checks.facts.find import stated
from lrp4rag.guard.checks.facts.whole import whole
from lrp4rag.guard.checks.plain import plain
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import words_of

SAME_WORDS, MORE_LIKE = 0.6, 0.15
"""How much alike a sentence and one of a passage are, and by how much more than any that holds, where no
value tells (0 to 1, Dice)."""
SHARED = 0.5
"""The part of a sentence's words that a passage with its value has."""
LONG = 2000
"""Characters of a sentence that are looked at."""
_HARD = frozenset({"quantity", "date", "time"})


def resting_on(given: CheckInput, some: Mapping[int, Span]) -> Iterator[tuple[int, int, int]]:
    """(start, end, passage) of each sentence of the response that says what only some characters of some
    passages have: their values, or nearly their words."""
    text = whole(given.response or "")
    ours, others = list[Stretch](), list[Stretch]()
    for number, source in enumerate(given.sources):
        first, last = some.get(number, (0, 0))
        for start, end in sentences_in(whole(source.text)):
            given.tick()
            among = ours if start < last and first < end else others
            among.append(Stretch(number, plain(whole(source.text[start:end][:LONG])).text))
    for start, end in stated(text, given.tick):
        given.tick()
        passage = _resting(Stretch(-1, plain(text[start:end][:LONG]).text), ours, others)
        if passage is not None:
            yield start, end, passage


@dataclass(frozen=True)
class Stretch:
    """A sentence of a passage, or of the answer, without its disguise."""

    passage: int
    text: str

    @cached_property
    def words(self) -> frozenset[str]:
        """All of them, small ones too: "all" and "not" tell."""
        return frozenset(stem(word) for word in words_of(self.text))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return tuple(one for one in find_values(self.text) if one.kind in _HARD)

    def like(self, other: Stretch) -> float:
        return 2 * len(self.words & other.words) / max(len(self.words) + len(other.words), 1)

    def shared(self, other: Stretch) -> float:
        return len(self.words & other.words) / max(len(self.words), 1)

    def has(self, value: Value) -> bool:
        return any(agree(value, one) for one in self.values)


def _resting(sentence: Stretch, ours: Sequence[Stretch], others: Sequence[Stretch]) -> int | None:
    """The passage of `ours` that a sentence rests on; None where it rests on another."""
    only_ours = [
        value
        for value in sentence.values
        if any(one.has(value) for one in ours) and not any(one.has(value) for one in others)
    ]
    best = max(ours, key=sentence.like, default=None)
    if best is None:
        return None
    for value in only_ours:
        place = max((one for one in ours if one.has(value)), key=sentence.shared)
        if sentence.shared(place) >= SHARED:
            return place.passage
    like, other = sentence.like(best), max(map(sentence.like, others), default=0.0)
    values_fit = all(best.has(value) for value in sentence.values)
    return best.passage if values_fit and like >= SAME_WORDS and like - other >= MORE_LIKE else None
