"""`Window`: what the audit log has of the answers of a period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked

from lrp4rag.guard.monitoring.periods import Period
from lrp4rag.guard.policy import Action
from lrp4rag.guard.policy.simulate import SERVED
from lrp4rag.guard.service.reviews import KINDS
from lrp4rag.util.types import Count, Finite, Probability

if TYPE_CHECKING:
    from lrp4rag.guard.audit import AuditLog, Entry

RETRIEVAL = "retrieval"
VERSIONS = ("package", "detector", "reader", "policy")
ABSTAINED, UNAVAILABLE = "unlike training data", "unavailable"
"""Reasons of answers that have no verdict."""

LARGEST_SCORE = 1e6
"""Of a retrieval: a client may give any number, and one that is larger makes a mean of itself."""

_Words = Annotated[str, Field(max_length=200)]


def _of_a_scale(score: float) -> float | None:
    return score if abs(score) <= LARGEST_SCORE else None


_Score = Annotated[Finite, AfterValidator(_of_a_scale)]


@checked(frozen=True, slots=True, config=ConfigDict(extra="ignore", strict=True))
class Observed:
    """The record of a decision: on an answer, or on what was retrieved for one. What was not recorded is
    None. `retrieval_score` is the best of its passages', None beyond `LARGEST_SCORE`. Raises
    `ValidationError` for what cannot be."""

    id: str
    kind: str
    time: datetime
    action: Action
    reason: _Words
    rule: _Words | None = None
    probability: Probability | None = None
    threshold: Probability | None = None
    faithfulness: Probability | None = None
    fact_score: Probability | None = None
    abstained: bool | None = None
    characters: Count | None = None
    sentence_count: Count | None = None
    passages: Count | None = None
    retrieval_score: _Score | None = None
    topic: _Words | None = None
    generator: _Words | None = None
    package: _Words | None = None
    detector: _Words | None = None
    reader: _Words | None = None
    policy: _Words | None = None

    @property
    def served(self) -> bool:
        return self.action in SERVED

    @property
    def unlike(self) -> bool:
        """Whether the detector abstained."""
        return bool(self.abstained) or self.reason == ABSTAINED

    @property
    def judged(self) -> bool:
        """Whether there is a verdict behind it."""
        return not self.unlike and self.reason != UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Window:
    """The answers of a period and the checks of what was retrieved, in the order of the log; `unreadable` is
    how many records are none of this version's."""

    period: Period
    answers: tuple[Observed, ...]
    retrievals: tuple[Observed, ...] = ()
    unreadable: int = 0

    def versions(self, name: str) -> Counter[str]:
        """How many answers were decided on by each version of the package, detector, reader or policy."""
        return Counter(value for one in self.answers if (value := getattr(one, name)) is not None)


def read_window(log: AuditLog, period: Period) -> Window:
    """Raises `LRP4RAGError` where an entry was changed."""
    entries = log.entries(period.start, until=period.end, kinds=(*KINDS, RETRIEVAL))
    return window_of(entries, period)


def window_of(entries: Iterable[Entry], period: Period) -> Window:
    """The window that these entries make."""
    answers, retrievals, unreadable = list[Observed](), list[Observed](), 0
    for entry in entries:
        found = observed(entry)
        if found is None:
            unreadable += 1
        else:
            (answers if found.kind in KINDS else retrievals).append(found)
    return Window(period, tuple(answers), tuple(retrievals), unreadable)


def observed(entry: Entry) -> Observed | None:
    """The record of an entry; None for one that another version wrote, or that says what cannot be."""
    try:
        return Observed(**{**entry.record, "time": datetime.fromisoformat(entry.time)})
    except (ValidationError, ValueError, TypeError):
        return None
