"""`Check`: a question of a policy about an answer or its passages, and `Finding`: a result of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lrp4rag.source import Source

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Verdict

Need = Literal["response", "verdict"]
Detail = str | int | float | bool | None | Sequence["Detail"] | Mapping[str, "Detail"]


class OverBudget(Exception):  # noqa: N818 - no fault: the input was too much
    """A check has used up its time."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckInput:
    """The input of a check: a question, the passages as they were retrieved, and the response and its verdict
    once they exist. Passages count from 0 here. `now` has a time zone."""

    question: str
    sources: tuple[Source, ...]
    response: str | None = None
    verdict: Verdict | None = None
    _: KW_ONLY
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    deadline: float = float("inf")
    """Of `time.monotonic`."""
    memory: dict[tuple[str, int], Any] = field(default_factory=dict)
    """The findings of a check in a passage, by the check's name and the passage's number; the inputs of the
    sentences of a stream share it."""

    def tick(self) -> None:
        """Raise `OverBudget` past the deadline. Every loop of a check calls it that a request can make
        long."""
        if time.monotonic() > self.deadline:
            raise OverBudget


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a `check`: its `kind`, and in `words` what a person reads.

    It is about characters `start` to `end` (exclusive) of the response, where it is about some, and about the
    passages with the indexes `passages`. `details` are for programs: JSON values.
    """

    check: str
    kind: str
    words: str
    _: KW_ONLY
    start: int | None = None
    end: int | None = None
    passages: tuple[int, ...] = ()
    details: Mapping[str, Detail] = field(default_factory=dict)


class Check(Protocol):
    """A frozen dataclass: its fields are what a policy may set of it.

    `name` is that in the policy, `needs` what it cannot do without beside question and passages.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings, in the order of the response or of the passages. Raises `OverBudget`."""
        ...
