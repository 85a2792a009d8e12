"""`REASONS`: each reason of a decision, with the finding that gives it and the texts that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lrp4rag.classifiers.verdict import Flagged

Reason = Literal[
    "grounded",
    "states nothing",
    Flagged,
    "suspect",
    "insufficient evidence",
    "knowledge gap",
    "conflict",
    "outdated source",
    "fabricated citation",
    "misattributed citation",
    "disguised text",
    "planted instructions",
    "omitted condition",
    "unlike training data",
    "unavailable",
]
Kind = Literal[
    "null", "fabricated", "misattributed", "disguised", "planted", "conflict", "outdated", "omitted"
]
"""Kinds of findings that have a rule in a policy."""


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A reason that findings of `kind` by the check `check` give; without `kind`, the verdict gives it.

    `instead`, `below` and `notice` name fields of `Texts`: in place of a withheld answer, under a served
    answer, in place of a withheld sentence. `in_streams`: whether each sentence of a stream is checked for
    it. `open`: whether it leaves open that the answer is grounded.
    """

    kind: Kind | None = None
    check: str = ""
    instead: str = "insufficient"
    below: str = "uncertain"
    notice: str = "notice"
    in_streams: bool = False
    open: bool = False


REASONS: dict[Reason, ReasonRow] = {
    "contradicted": ReasonRow(below="contradicted"),
    "knowledge gap": ReasonRow("null", "retrieval", instead="gap"),
    "fabricated citation": ReasonRow(
        "fabricated", "citations", "fabricated", "miscited", "distrusted_notice", in_streams=True
    ),
    "misattributed citation": ReasonRow(
        "misattributed", "citations", "escalated", "miscited", "distrusted_notice", in_streams=True
    ),
    "disguised text": ReasonRow(
        "disguised", "disguise", "escalated", notice="distrusted_notice", in_streams=True
    ),
    "planted instructions": ReasonRow(
        "planted", "planted", "escalated", notice="distrusted_notice", in_streams=True
    ),
    "conflict": ReasonRow("conflict", "conflicts", below="conflict", open=True),
    "outdated source": ReasonRow("outdated", "outdated", below="outdated"),
    "omitted condition": ReasonRow("omitted", "omissions", below="omitted", open=True),
    "unlike training data": ReasonRow(
        instead="unlike", below="unchecked", notice="unavailable_notice", open=True
    ),
    "unavailable": ReasonRow(
        instead="unavailable", below="unchecked", notice="unavailable_notice", open=True
    ),
}
"""Reasons that differ from the default row; of equally strict findings the first decides."""
REASON_OF: dict[Kind, Reason] = {row.kind: reason for reason, row in REASONS.items() if row.kind is not None}
CHECK_OF: dict[Kind, str] = {kind: REASONS[reason].check for kind, reason in REASON_OF.items()}
IN_STREAMS: tuple[Kind, ...] = tuple(kind for kind, reason in REASON_OF.items() if REASONS[reason].in_streams)


def row_of(reason: Reason) -> ReasonRow:
    """Return the row of a reason, by default the row of what the detector doubts."""
    return REASONS.get(reason, ReasonRow())
