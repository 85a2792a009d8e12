"""`Passages` and `Compared`: what passages say of each sentence of an answer, in words and in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lrp4rag.claims.absence import compare_absence
from lrp4rag.claims.compare import Comparer, Comparison, Slots
from lrp4rag.claims.evidence import Evidence
from lrp4rag.claims.grounds import Counterpart, Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.negation import compare_signs
from lrp4rag.claims.novelty import compare_novelty
from lrp4rag.claims.places import Place
from lrp4rag.claims.restrictions import LeftOut, compare_restrictions
from lrp4rag.claims.words import content_words

Span = tuple[int, int]


class Passages:
    """Passages as answers to a `question` are compared with them; made where they are needed, and once."""

    def __init__(
        self, question: str, passages: Sequence[str], tick: Callable[[], None] = lambda: None
    ) -> None:
        self.question, self.texts, self._tick = question, tuple(passages), tick

    @cached_property
    def index(self) -> Index:
        """Their sentences."""
        return Index(self.texts, self._tick)

    @cached_property
    def asked(self) -> list[float]:
        """How similar each sentence is to the question."""
        return self.index.similarities(content_words(self.question))

    @cached_property
    def comparer(self) -> Comparer:
        """Their values, and what these are said of."""
        return Comparer(self.question, self.index)

    @cached_property
    def grounds(self) -> Grounds:
        """Their clauses, and which words these deny."""
        return Grounds(self.question, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Characters `start` to `end` of an answer, a sentence, beside the passages.

    * `values`: what the passages have in the place of each of its values.
    * `denials`: what they deny of it, or it of them; `left_out`: conditions of theirs that it leaves out; the
      surest first.
    * `answered`: where it says that the passages lack something, what may answer it.
    * `home`: the clause of the passages that says most of it, its subject left out; None without one.
    * `features`: numbers by name; one that is missing is 0.
    """

    start: int
    end: int
    values: tuple[Comparison, ...]
    denials: tuple[Counterpart, ...]
    left_out: tuple[LeftOut, ...]
    answered: Counterpart | None
    home: Evidence | None
    features: Mapping[str, float]


def compare_answer(passages: Passages, answer: str, sentences: Sequence[Span]) -> list[Compared]:
    """Compare each sentence of an answer with the passages. What follows a sentence changes nothing of it: it
    is the same while the answer is being written."""
    grounds, comparer = passages.grounds, passages.comparer
    places = [Place(0, start, end, answer, comparer.around) for start, end in sentences]
    every = {slots.sentence: slots for slots in comparer.compare(places)}
    said, before, found = set[str](), list[Slots](), []
    for place in places:
        said |= {word.base for word in place.content}
        signs, denials = compare_signs(grounds, place)
        limits, left_out = compare_restrictions(grounds, place, said)
        absence, answered = compare_absence(grounds, place)
        groups = {"sign": signs, "limit": limits, "absence": absence, "new": compare_novelty(grounds, place)}
        values: tuple[Comparison, ...] = ()
        home = None
        if place in every:
            slots = every[place]
            home = slots.home
            groups |= {"words": slots.clauses(), "subject": slots.subject(before)}
            values = tuple(slots.comparisons())
            before.append(slots)
        features = {
            f"{group}: {name}": value
            for group, numbers in groups.items()
            for name, value in numbers.items()
            if math.isfinite(value)
        }
        span = place.start, place.end
        found.append(Compared(*span, values, tuple(denials), tuple(left_out), answered, home, features))
    return found
