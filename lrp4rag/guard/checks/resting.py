"""`resting_on`: the sentences of an answer that rest on some characters of the passages and on no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lrp4rag.claims import Value, agree, find_values
from lrp4rag.claims.clauses import Span
from lrp4rag.claims.value import NUMERIC
from lrp4rag.claims.words import stem
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.facts import stated
from lrp4rag.guard.checks.plain import plain
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import encodable, words_of

SAME_WORDS, MORE_LIKE = 0.6, 0.15
"""The least likeness (Dice, 0 to 1) of a sentence and the sentence of a passage that it rests on where no
value tells, and its least lead over every sentence outside."""
SHARED = 0.5
"""The least share of a sentence's words that the passage with its value has."""


def resting_on(inputs: CheckInput, spans: Mapping[int, Span]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, passage) of each sentence of the response that says what only `spans` of passages
    have, by passage: their values, or nearly their words."""
    text = encodable(inputs.response or "")
    inside, outside = list[Stretch](), list[Stretch]()
    for number, source in enumerate(inputs.sources):
        first, last = spans.get(number, (0, 0))
        for start, end in sentences_in(encodable(source.text)):
            inputs.tick()
            side = inside if start < last and first < end else outside
            side.append(Stretch(number, plain(encodable(source.text[start:end])).text))
    for start, end in stated(text, inputs.tick):
        inputs.tick()
        passage = _resting(Stretch(-1, plain(text[start:end]).text), inside, outside)
        if passage is not None:
            yield start, end, passage


@dataclass(frozen=True)
class Stretch:
    """A sentence of a passage, or of the answer, without its disguise."""

    passage: int
    text: str

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of all words, since "all" and "not" tell too."""
        return frozenset(stem(word) for word in words_of(self.text))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return tuple(value for value in find_values(self.text) if value.kind in NUMERIC)

    def like(self, other: Stretch) -> float:
        return 2 * len(self.words & other.words) / max(len(self.words) + len(other.words), 1)

    def shared(self, other: Stretch) -> float:
        return len(self.words & other.words) / max(len(self.words), 1)

    def has(self, value: Value) -> bool:
        return any(agree(value, candidate) for candidate in self.values)


def _resting(sentence: Stretch, inside: Sequence[Stretch], outside: Sequence[Stretch]) -> int | None:
    """Return the passage that a sentence rests on by a stretch `inside`; None where it rests on none."""
    only_inside = [
        value
        for value in sentence.values
        if any(stretch.has(value) for stretch in inside)
        and not any(stretch.has(value) for stretch in outside)
    ]
    best = max(inside, key=sentence.like, default=None)
    if best is None:
        return None
    for value in only_inside:
        nearest = max((stretch for stretch in inside if stretch.has(value)), key=sentence.shared)
        if sentence.shared(nearest) >= SHARED:
            return nearest.passage
    like, rival = sentence.like(best), max(map(sentence.like, outside), default=0.0)
    values_fit = all(best.has(value) for value in sentence.values)
    return best.passage if values_fit and like >= SAME_WORDS and like - rival >= MORE_LIKE else None
