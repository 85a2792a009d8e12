"""Periods of time, and `Window`: the answers of a period in the audit log."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked

from lrp4rag.guard.policy import WITHHELD, Action
from lrp4rag.guard.service.reviews import KINDS
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line
from lrp4rag.util.types import Count, Finite, Probability

_AGO = re.compile(r"([0-9]{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_BETWEEN = ".."
HELP = "7d, 24h or 2w ago, an ISO 8601 date or time (UTC where it has no zone), or two of them: START..END"
"""The forms of a period."""


@dataclass(frozen=True, slots=True)
class Period:
    """The time from `start` until before `end`, both in UTC. Raises `InputError` for an empty one."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise InputError(f"it ends at {shown(self.end)}, and begins at {shown(self.start)}")

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{shown(self.start)} to {shown(self.end)}"


def moment(text: str, now: datetime, field: str | None = None) -> datetime:
    """Parse a moment: so long ago, or in ISO 8601; return it in UTC. Raises `InputError` for anything else,
    and for a moment yet to come."""
    words = text.strip()
    try:
        if (ago := _AGO.fullmatch(words)) is not None:
            return now - int(ago[1]) * _UNITS[ago[2]]
        if re.match(r"[0-9]{4}-?[0-9W]", words) is None:
            raise ValueError
        time = datetime.fromisoformat(words)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"'{one_line(text, 40)}' is no time; give one such as {HELP}"
        raise InputError(message, field=field) from None
    if time > now:
        raise InputError(f"{shown(time)} is yet to come; it is {shown(now)}", field=field)
    return time


def period(text: str, now: datetime, *, end: datetime | None = None, field: str | None = None) -> Period:
    """Parse a period: from a moment until `end` (by default now), or between two. Raises `InputError` naming
    the field."""
    first, between, last = text.partition(_BETWEEN)
    start = moment(first, now, field)
    until = moment(last, now, field) if between else now if end is None else end
    try:
        return Period(start, until)
    except InputError as error:
        raise InputError(error.reason, field=field) from None


def preceding(late: Period, lengths: int) -> Period:
    """Return the period before another, `lengths` times as long. Raises `InputError` beyond all
    calendars."""
    try:
        return Period(late.start - lengths * late.length, late.start)
    except OverflowError:
        message = f"nothing is that long before {shown(late.start)}: name where it begins"
        raise InputError(message, field="reference") from None


def shown(time: datetime) -> str:
    """Write a time to the minute: 2026-11-01 09:30, in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


if TYPE_CHECKING:
    from lrp4rag.guard.audit import AuditLog, Entry

RETRIEVAL = "retrieval"
VERSIONS = ("package", "detector", "reader", "policy")
ABSTAINED, UNAVAILABLE = "unlike training data", "unavailable"
"""Reasons of answers that have no verdict."""

LARGEST_SCORE = 1e6
"""The largest score of a retrieval that counts: a client may give any, and a larger one would be the mean."""

_Words = Annotated[str, Field(max_length=200)]


def _of_a_scale(score: float) -> float | None:
    return score if abs(score) <= LARGEST_SCORE else None


_Score = Annotated[Finite, AfterValidator(_of_a_scale)]


@checked(frozen=True, slots=True, config=ConfigDict(extra="ignore", strict=True))
class Answer:
    """The record of a decision on an answer, or on the passages retrieved for an answer. A field that was not
    recorded is None. `retrieval_score` is that of the best passage, None beyond `LARGEST_SCORE`. Raises
    `ValidationError` for impossible values."""

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
        return self.action not in WITHHELD

    @property
    def unlike(self) -> bool:
        """True where the detector abstained."""
        return bool(self.abstained) or self.reason == ABSTAINED

    @property
    def judged(self) -> bool:
        """True where the decision rests on a verdict."""
        return not self.unlike and self.reason != UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Window:
    """The answers of a period and the checks of passages, in the order of the log; `unreadable` is how many
    records this version cannot read."""

    period: Period
    answers: tuple[Answer, ...]
    retrievals: tuple[Answer, ...] = ()
    unreadable: int = 0

    def versions(self, name: str) -> Counter[str]:
        """Count the answers of each version of the package, detector, reader or policy."""
        return Counter(value for answer in self.answers if (value := getattr(answer, name)) is not None)


def read_window(log: AuditLog, period: Period) -> Window:
    """Read the answers of a period. Raises `LRP4RAGError` where an entry was changed."""
    answers, retrievals, unreadable = list[Answer](), list[Answer](), 0
    for entry in log.entries(period.start, until=period.end, kinds=(*KINDS, RETRIEVAL)):
        answer = answer_of(entry)
        if answer is None:
            unreadable += 1
        else:
            (answers if answer.kind in KINDS else retrievals).append(answer)
    return Window(period, tuple(answers), tuple(retrievals), unreadable)


def answer_of(entry: Entry) -> Answer | None:
    """Return the record of an entry; None for one of another version, or with impossible values."""
    try:
        return Answer(**{**entry.record, "time": datetime.fromisoformat(entry.time)})
    except (ValidationError, ValueError, TypeError):
        return None
