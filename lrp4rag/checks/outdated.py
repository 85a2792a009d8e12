"""`Outdated`: sentences of an answer that rest on passages which do not hold at the time asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from lrp4rag.checks.check import CheckInput, Finding, Need
from lrp4rag.checks.facts.find import stated
from lrp4rag.checks.facts.whole import whole
from lrp4rag.checks.gate import RetrievalGate
from lrp4rag.sentences import split_sentences
from lrp4rag.values import Value, agree, find_values
from lrp4rag.values.words import stem

NO_LONGER = ("expired", "not yet effective", "superseded")
SAME_WORDS, MORE_LIKE = 0.6, 0.15
"""How much alike a sentence and one of a passage are, and by how much more than any that holds, where no
value tells (0 to 1, Dice)."""
SHARED = 0.5
"""The part of a sentence's words that a passage with its value has."""
LONG = 2000
"""Characters of a sentence that are looked at."""
_HARD = frozenset({"quantity", "date", "time"})


@dataclass(frozen=True, slots=True)
class Outdated:
    """One finding of kind "outdated" for each sentence that says what only a passage has that is expired,
    superseded by another one, or not yet effective: its values, or nearly its words.

    Which passages hold is the retrieval gate's to say: a question that asks for another time keeps those of
    then. `time_zone` is that of dates without one, by its IANA name.
    """

    name: ClassVar[str] = "outdated"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    time_zone: str | None = None

    def __call__(self, given: CheckInput) -> list[Finding]:
        """In the order of the response. Raises `OverBudget`."""
        gate = RetrievalGate(minimum=0, time_zone=self.time_zone)
        why = {one.passages[0]: one for one in gate(given) if one.kind in NO_LONGER}
        if not why or given.response is None:
            return []
        text = whole(given.response)
        places = [
            _Place(number, whole(source.text[start:end][:LONG]))
            for number, source in enumerate(given.sources)
            for start, end in split_sentences(whole(source.text))
        ]
        old = [one for one in places if one.passage in why]
        current = [one for one in places if one.passage not in why]
        found = []
        for start, end in stated(text, given.tick):
            given.tick()
            passage = _resting(_Place(-1, text[start:end][:LONG]), old, current)
            if passage is not None:
                said = why[passage]
                found.append(
                    Finding(
                        self.name,
                        "outdated",
                        said.words,
                        start=start,
                        end=end,
                        passages=said.passages,
                        details={"because": said.kind},
                    )
                )
        return found


@dataclass(frozen=True)
class _Place:
    """A sentence of a passage, or of the answer."""

    passage: int
    text: str

    @cached_property
    def words(self) -> frozenset[str]:
        """All of them, small ones too: "all" and "not" tell."""
        return frozenset(stem(word) for word in re.findall(r"\w+", self.text.lower()))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return tuple(one for one in find_values(self.text) if one.kind in _HARD)

    def like(self, other: _Place) -> float:
        return 2 * len(self.words & other.words) / max(len(self.words) + len(other.words), 1)

    def shared(self, other: _Place) -> float:
        return len(self.words & other.words) / max(len(self.words), 1)

    def has(self, value: Value) -> bool:
        return any(agree(value, one) for one in self.values)


def _resting(sentence: _Place, old: Sequence[_Place], current: Sequence[_Place]) -> int | None:
    """The passage that no longer holds on which a sentence rests; None where it rests on another."""
    only_old = [
        value
        for value in sentence.values
        if any(one.has(value) for one in old) and not any(one.has(value) for one in current)
    ]
    best = max(old, key=sentence.like, default=None)
    if best is None:
        return None
    for value in only_old:
        place = max((one for one in old if one.has(value)), key=sentence.shared)
        if sentence.shared(place) >= SHARED:
            return place.passage
    like, other = sentence.like(best), max(map(sentence.like, current), default=0.0)
    values_fit = all(best.has(value) for value in sentence.values)
    return best.passage if values_fit and like >= SAME_WORDS and like - other >= MORE_LIKE else None
