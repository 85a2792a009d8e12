"""`review_list`: answers for people to look at, the doubtful ones first, then a sample of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lrp4rag.guard.monitoring.periods import Period
from lrp4rag.guard.monitoring.windows import Observed, observed
from lrp4rag.guard.second_opinion.agreement import Agreement, agreement
from lrp4rag.guard.second_opinion.sampling import lot
from lrp4rag.guard.service.reviews import KINDS, OPINION, SAYING, last_said
from lrp4rag.util.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.guard.audit import AuditLog

Why = Literal["escalated", "disputed", "withheld", "doubtful", "sampled"]
WHYS: tuple[Why, ...] = ("escalated", "disputed", "withheld", "doubtful", "sampled")
"""In the order of the list."""
LIMIT, SAMPLE = 50, 20


@dataclass(frozen=True, slots=True)
class Item:
    """An answer, why it is on the list, in words too, and its texts where the log keeps them."""

    answer: Observed
    why: Why
    words: str
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReviewList:
    """`of` is how many answers of the period have each reason, those included that are not on the list;
    `reviewed` were looked at already, and are not. `agreement` is that of detector and judge on the answers
    that were drawn for a second opinion, None where none was."""

    period: Period
    items: tuple[Item, ...]
    of: Mapping[Why, int]
    answers: int
    reviewed: int
    unreadable: int
    agreement: Agreement | None = None

    def shown(self, why: Why) -> int:
        return sum(one.why == why for one in self.items)


def review_list(
    log: AuditLog, period: Period, *, limit: int = LIMIT, sample: int = SAMPLE
) -> ReviewList:
    """At most `limit` answers that were withheld, doubted or contradicted by a user, the gravest first, and
    `sample` of all others, drawn at random: the same ones for the same period's beginning.

    Answers that a reviewer has spoken on are left out. Raises `InputError` for a period without answers.
    """
    said = last_said(log.entries(period.start, kinds=SAYING))
    opinions = {str(one.record.get("of")): one.record for one in log.entries(period.start, kinds=(OPINION,))}
    answers, reviewed, unreadable = list[Observed](), 0, 0
    pairs = list[tuple[bool | None, bool | None]]()
    for entry in log.entries(period.start, until=period.end, kinds=KINDS):
        found = observed(entry)
        if found is None:
            unreadable += 1
            continue
        opinion = opinions.get(found.id, {})
        if opinion.get("chosen") == "sampled":
            pairs.append((_grounded(found), opinion.get("grounded")))
        if said.get(found.id, {}).get("kind") == "review":
            reviewed += 1
        else:
            answers.append(found)
    if not answers and not reviewed:
        unread = f" ({unreadable} records could not be read)" if unreadable else ""
        message = (
            f"{period} UTC holds no answers{unread}: name an earlier beginning, or another log with --audit"
        )
        raise InputError(message, field="since")
    grouped: dict[Why, list[tuple[Observed, str]]] = {why: [] for why in WHYS}
    for one in answers:
        why, words = _reason(one, said.get(one.id), opinions.get(one.id, {}).get("grounded"))
        grouped[why].append((one, words))
    items = tuple(
        Item(one, why, words, log.texts(one.id)) for one, why, words in _chosen(grouped, limit, sample, period.start.isoformat())
    )
    counts = {why: len(grouped[why]) for why in WHYS}
    total = len(answers) + reviewed
    agreed = agreement(pairs) if pairs else None
    return ReviewList(period, items, counts, total, reviewed, unreadable, agreed)


def _grounded(one: Observed) -> bool | None:
    """What the detector says, where it does."""
    if not one.judged or one.probability is None or one.threshold is None:
        return None
    return one.probability < one.threshold


def _reason(one: Observed, said: Mapping[str, Any] | None, opinion: bool | None) -> tuple[Why, str]:
    """`opinion` is whether a judge finds the answer grounded, where it says."""
    if one.action == "escalate":
        also = "" if opinion is None else f"; the judge finds it {'right' if opinion else 'hallucinated'}"
        return "escalated", f"escalated, and waits for a reviewer: {one.reason}{also}"
    told = {"grounded": True, "hallucinated": False}.get(str(said and said.get("said")))
    if dispute := _dispute(one, "a user says that it is", told) or _dispute(
        one, "the judge finds it", opinion
    ):
        return "disputed", dispute
    if not one.served:
        return "withheld", f"withheld: {one.reason}"
    doubt = _doubt_of(one)
    return ("doubtful", doubt) if doubt else ("sampled", "")


def _dispute(one: Observed, who: str, grounded: bool | None) -> str:
    """What is said against a decision; empty for nothing."""
    if grounded is False and one.served:
        return f"{who} hallucinated, and it was served"
    if grounded and not one.served:
        return f"{who} right, and it was withheld: {one.reason}"
    return ""


def _doubt_of(one: Observed) -> str:
    """What is doubtful about an answer that was served; empty for nothing."""
    if not one.judged:
        return f"served without a verdict: {one.reason}"
    if one.action == "mark":
        return f"served with marks: {one.reason}"
    if one.action == "disclose":
        return f"served with what the passages say against each other: {one.reason}"
    if one.probability is not None and one.threshold is not None and one.probability >= one.threshold:
        return f"served, though the detector flags it (from {one.threshold:.2f} on)"
    return ""


def _chosen(
    grouped: Mapping[Why, list[tuple[Observed, str]]], limit: int, sample: int, seed: str
) -> Iterator[tuple[Observed, Why, str]]:
    left = limit
    for why in WHYS[:-1]:
        some = sorted(grouped[why], key=lambda pair: (-_likelihood(pair[0]), pair[0].time))[:left]
        left -= len(some)
        yield from ((one, why, words) for one, words in some)
    key, others = seed.encode(), [one for one, _ in grouped["sampled"]]
    drawn = sorted(others, key=lambda one: (lot(key, one.id), one.id))[:sample]
    for one in sorted(drawn, key=lambda one: one.time):
        yield one, "sampled", f"drawn at random, {len(drawn)} of {len(others)} that were served without doubt"


def _likelihood(one: Observed) -> float:
    """That it is hallucinated; what has no probability comes first."""
    return 1.0 if one.probability is None else one.probability
