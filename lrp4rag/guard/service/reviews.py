"""Escalated answers that wait for a reviewer, and people's statements on answers, which become labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from lrp4rag.example import Example, Label
from lrp4rag.guard.audit import AuditLog, Entry
from lrp4rag.guard.policy import Reason
from lrp4rag.guard.policy.reasons import row_of
from lrp4rag.guard.service.models import Body, Name, Text
from lrp4rag.guard.service.problems import Problem

Said = Literal["grounded", "hallucinated", "unclear"]
KINDS = ("response", "answer")
"""Kinds of entries that a person can make a statement on."""
QUEUED = (*KINDS, "review")
"""Kinds of entries that a queue of escalated answers is made of."""
SAYING = ("review", "feedback")
"""Kinds of entries with such a statement."""
OPINION: Final = "opinion"
"""The kind of entries with a judge's opinion."""
PASSAGE = "passage "


class Span(Body):
    """Characters of the response that are hallucinated; `end` is exclusive."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]

    @field_validator("end")
    @classmethod
    def _after_start(cls, end: int, info: ValidationInfo) -> int:
        if end <= info.data.get("start", 0):
            raise ValueError("a span ends after it begins; end is exclusive")
        return end


class ReviewRequest(Body):
    """A reviewer's decision on an answer."""

    decision: Name = Field(description="The id of the decision.")
    reviewer: Annotated[Name, Field(min_length=1)]
    said: Said
    spans: list[Span] = Field(default=[], max_length=1000)
    comment: Text | None = None

    @field_validator("spans")
    @classmethod
    def _of_hallucinated(cls, spans: list[Span], info: ValidationInfo) -> list[Span]:
        if spans and info.data.get("said", "hallucinated") != "hallucinated":
            raise ValueError("spans are what is hallucinated: leave them out, or say hallucinated")
        return spans

    def require_within(self, characters: int | None) -> None:
        """Raise a problem (422) for a span beyond the end of an answer of so many characters, where known."""
        for k, span in enumerate(self.spans):
            if characters is not None and span.end > characters:
                detail = (
                    f"the span {span.start}..{span.end} ends after the answer, of {characters} characters"
                )
                raise Problem(422, "Invalid request", detail, field=f"spans.{k}.end")


class FeedbackRequest(Body):
    """What a user says of an answer."""

    decision: Name = Field(description="The id of the decision.")
    said: Said
    comment: Text | None = None


def corrects(said: Said, record: Mapping[str, Any]) -> bool | None:
    """Say whether a person says the opposite of a decision; None where one of the two leaves open whether the
    answer is grounded."""
    if said == "unclear" or row_of(record["reason"]).open or record.get("rule") == "rules.null":
        return None
    decided: Reason = record["reason"]
    return (said == "grounded") != (decided == "grounded")


class Queue:
    """Escalated decisions that nobody has reviewed, the oldest first, by their id. `last` is the number of
    the last entry that was taken in."""

    def __init__(self) -> None:
        self.waiting: dict[str, Mapping[str, Any]] = {}
        self.last = 0

    def note(self, entry: Entry) -> None:
        """Take in one more entry of the log."""
        record = entry.record
        self.last = entry.sequence
        if entry.kind in KINDS and record.get("action") == "escalate":
            self.waiting[entry.id] = {"time": entry.time, **record}
        elif entry.kind == "review":
            self.waiting.pop(str(record.get("of")), None)


def last_statements(entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    """Return the record of the last statement on each decision, by its id: a reviewer's word before a
    user's."""
    statements: dict[str, dict[str, Any]] = {}
    for entry in entries:
        of = str(entry.record.get("of"))
        if entry.kind == "review" or (
            entry.kind == "feedback" and statements.get(of, {}).get("kind") != "review"
        ):
            statements[of] = entry.record
    return statements


def labelled(log: AuditLog) -> Iterator[Example]:
    """Yield answers, labelled by the last statement on them, a reviewer's word before a user's; those whose
    texts the log does not have, and unclear ones, are left out."""
    for of, record in last_statements(log.entries(kinds=SAYING)).items():
        example = _example(of, log.texts(of), record)
        if example is not None:
            yield example


def passages_of(texts: Mapping[str, str]) -> list[str]:
    """Return the passages among the texts of an answer, in their order; the log has texts in that of their
    names, which puts passage 10 before passage 2."""
    numbers = [name.removeprefix(PASSAGE) for name in texts if name.startswith(PASSAGE)]
    return [texts[f"{PASSAGE}{number}"] for number in sorted(filter(str.isdecimal, numbers), key=int)]


def _example(id: str, texts: Mapping[str, str], record: Mapping[str, Any]) -> Example | None:
    passages, response = passages_of(texts), texts.get("response", "")
    if record["said"] == "unclear" or not passages or not response.strip():
        return None
    return Example(
        texts.get("question", ""),
        passages,
        response,
        labels=tuple(_labels(record, len(response))),
        id=id,
    )


def _labels(record: Mapping[str, Any], length: int) -> list[Label]:
    """Return what is hallucinated of a response: the marked spans as far as they lie in it, and all of it
    where none does, so that it is never taken for faithful."""
    if record["said"] == "grounded":
        return []
    clipped = [Label(span["start"], min(span["end"], length)) for span in record.get("spans", ())]
    return [label for label in clipped if label.start < label.end] or [Label(0, length)]
