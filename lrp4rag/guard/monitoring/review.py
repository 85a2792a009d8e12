"""Answers for people to look at, and why; as text, as JSON, and as a table to fill in."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.text import Text

from lrp4rag.guard.monitoring.windows import Answer, Period, answer_of, shown
from lrp4rag.guard.second_opinion.kappa import Agreement, agreement
from lrp4rag.guard.service.reviews import KINDS, OPINION, SAYING, last_statements, passages_of
from lrp4rag.report.decision import ACTION_STYLES
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line, safe_cell, visible

if TYPE_CHECKING:
    from lrp4rag.guard.audit import AuditLog

Why = Literal["escalated", "disputed", "withheld", "doubtful", "sampled"]
WHYS: tuple[Why, ...] = ("escalated", "disputed", "withheld", "doubtful", "sampled")
"""The reasons, in the order of the list."""
LIMIT, SAMPLE = 50, 20


@dataclass(frozen=True, slots=True)
class Item:
    """An answer, why it is on the list, in words too, and its texts where the log keeps them."""

    answer: Answer
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
        return sum(item.why == why for item in self.items)


def review_list(log: AuditLog, period: Period, *, limit: int = LIMIT, sample: int = SAMPLE) -> ReviewList:
    """List at most `limit` answers that were escalated, disputed, withheld or doubted, the gravest first, and
    `sample` of all others, drawn at random: of the same answers, the same ones again.

    Answers that a reviewer has spoken on are left out. Raises `InputError` for a period without answers.
    """
    statements = last_statements(log.entries(period.start, kinds=SAYING))
    opinions = {
        str(entry.record.get("of")): entry.record for entry in log.entries(period.start, kinds=(OPINION,))
    }
    answers, reviewed, unreadable = list[Answer](), 0, 0
    pairs = list[tuple[bool | None, bool | None]]()
    for entry in log.entries(period.start, until=period.end, kinds=KINDS):
        answer = answer_of(entry)
        if answer is None:
            unreadable += 1
            continue
        opinion = opinions.get(answer.id, {})
        if opinion.get("chosen") == "sampled":
            pairs.append((_grounded(answer), opinion.get("grounded")))
        if statements.get(answer.id, {}).get("kind") == "review":
            reviewed += 1
        else:
            answers.append(answer)
    if not answers and not reviewed:
        unread = f" ({unreadable} records could not be read)" if unreadable else ""
        message = (
            f"{period} UTC holds no answers{unread}: name an earlier beginning, or another log with --audit"
        )
        raise InputError(message, field="since")
    grouped: dict[Why, list[tuple[Answer, str]]] = {why: [] for why in WHYS}
    for answer in answers:
        why, words = _reason(answer, statements.get(answer.id), opinions.get(answer.id, {}).get("grounded"))
        grouped[why].append((answer, words))
    items = tuple(
        Item(answer, why, words, log.texts(answer.id))
        for answer, why, words in _chosen(grouped, limit, sample)
    )
    counts = {why: len(grouped[why]) for why in WHYS}
    total = len(answers) + reviewed
    agreed = agreement(pairs) if pairs else None
    return ReviewList(period, items, counts, total, reviewed, unreadable, agreed)


def _grounded(answer: Answer) -> bool | None:
    """Return the detector's verdict, None without one."""
    if not answer.judged or answer.probability is None or answer.threshold is None:
        return None
    return answer.probability < answer.threshold


def _reason(answer: Answer, statement: Mapping[str, Any] | None, opinion: bool | None) -> tuple[Why, str]:
    """Return why an answer is on the list, and in words. `opinion` says whether a judge finds the answer
    grounded; None where it does not say."""
    if answer.action == "escalate":
        also = "" if opinion is None else f"; the judge finds it {'right' if opinion else 'hallucinated'}"
        return "escalated", f"escalated, and waits for a reviewer: {answer.reason}{also}"
    user = {"grounded": True, "hallucinated": False}.get(str(statement and statement.get("said")))
    if dispute := _dispute(answer, "a user says that it is", user) or _dispute(
        answer, "the judge finds it", opinion
    ):
        return "disputed", dispute
    if not answer.served:
        return "withheld", f"withheld: {answer.reason}"
    doubt = _doubt_of(answer)
    return ("doubtful", doubt) if doubt else ("sampled", "")


def _dispute(answer: Answer, who: str, grounded: bool | None) -> str:
    """Return the objection to a decision; empty without one."""
    if grounded is False and answer.served:
        return f"{who} hallucinated, and it was served"
    if grounded and not answer.served:
        return f"{who} right, and it was withheld: {answer.reason}"
    return ""


def _doubt_of(answer: Answer) -> str:
    """Return the doubt about an answer that was served; empty without one."""
    if not answer.judged:
        return f"served without a verdict: {answer.reason}"
    if answer.action == "mark":
        return f"served with marks: {answer.reason}"
    if answer.action == "disclose":
        return f"served with what the passages say against each other: {answer.reason}"
    if (
        answer.probability is not None
        and answer.threshold is not None
        and answer.probability >= answer.threshold
    ):
        return f"served, though the detector flags it (from {answer.threshold:.2f} on)"
    return ""


def _chosen(
    grouped: Mapping[Why, list[tuple[Answer, str]]], limit: int, sample: int
) -> Iterator[tuple[Answer, Why, str]]:
    left = limit
    for why in WHYS[:-1]:
        gravest = sorted(grouped[why], key=lambda pair: (-_likelihood(pair[0]), pair[0].time))[:left]
        left -= len(gravest)
        yield from ((answer, why, words) for answer, words in gravest)
    unremarkable = [answer for answer, _ in grouped["sampled"]]
    drawn = sorted(unremarkable, key=lambda answer: json_hash(answer.id))[:sample]
    for answer in sorted(drawn, key=lambda answer: answer.time):
        yield (
            answer,
            "sampled",
            f"drawn at random, {len(drawn)} of {len(unremarkable)} that were served without doubt",
        )


def _likelihood(answer: Answer) -> float:
    """Return the probability that it is hallucinated; 1 for answers without one."""
    return 1.0 if answer.probability is None else answer.probability


QUOTED = 160
"""Characters of a question or an answer on a terminal."""
_NUMBERS = ("probability", "faithfulness", "fact_score")
_FIELDS = ("action", "reason", "rule", *_NUMBERS, "threshold", "topic", "generator")
_TO_FILL = ("said", "reviewer", "comment")
_AGREEMENT = ("answers", "share", "kappa", "low", "high", "unanswered", "unjudged")


def render(reviews: ReviewList) -> RenderableType:
    """Render each answer with why it is on the list, and how many are not on it."""
    blocks: list[RenderableType] = [Text(headline(reviews), style="bold")]
    for number, item in enumerate(reviews.items, start=1):
        blocks += _lines(number, item)
    blocks.append(Text())
    counted = [f"{reviews.shown(why)} of {reviews.of[why]} {why}" for why in WHYS if reviews.of[why]]
    if counted:
        blocks.append(Text(f"On the list: {', '.join(counted)}."))
    if reviews.agreement is not None:
        blocks.append(Text(agreement_words(reviews.agreement)))
    if reviews.items and not any(item.texts for item in reviews.items):
        blocks.append(
            Text("The log keeps no texts of them: the server's setting keep_texts does.", style="dim")
        )
    if reviews.items:
        blocks.append(Text("Record what you find: POST /v1/reviews (docs/serve.md).", style="dim"))
    return Renderables(*blocks)


def agreement_words(agreement: Agreement) -> str:
    """Say how often detector and judge agree on answers that were drawn for a second opinion."""
    count = agreement.answers + agreement.unanswered + agreement.unjudged
    words = f"Second opinions on {count} answers that were drawn: "
    if agreement.share is None:
        return f"{words}none that both say something of."
    kappa = (
        ""
        if agreement.kappa is None
        else f", kappa {agreement.kappa:.2f} [{agreement.low:.2f}, {agreement.high:.2f}]"
    )
    return f"{words}detector and judge agree on {agreement.share:.0%} of {agreement.answers}{kappa}."


def headline(reviews: ReviewList) -> str:
    words = f"{reviews.period} UTC: {reviews.answers:,} answers, {reviews.reviewed:,} of them reviewed"
    words += f"; {reviews.unreadable:,} records could not be read" if reviews.unreadable else ""
    return words if reviews.items else f"{words}: nothing is left to review"


def _lines(number: int, item: Item) -> Iterator[Text]:
    answer = item.answer
    line = Text(f"\n{number:>3}  ").append(f"{answer.action:<9}", style=ACTION_STYLES[answer.action])
    yield line.append(f"{one_line(answer.id, 40)}  ").append(visible(item.words), style="bold")
    words = [shown(answer.time)]
    words += [
        f"{name.replace('_', ' ')} {value:.2f}"
        for name in _NUMBERS
        if (value := getattr(answer, name)) is not None
    ]
    words += [
        f"{name} {one_line(value, 40)}" for name in ("topic", "generator") if (value := getattr(answer, name))
    ]
    yield Text(f"     {', '.join(words)}", style="dim")
    for name in ("question", "response"):
        if name in item.texts:
            yield Text(f"     {name}: {one_line(item.texts[name], QUOTED)}")


def record(reviews: ReviewList) -> dict[str, Any]:
    """Return the list as JSON values."""
    return {
        "start": reviews.period.start.isoformat(),
        "end": reviews.period.end.isoformat(),
        "answers": reviews.answers,
        "reviewed": reviews.reviewed,
        "unreadable": reviews.unreadable,
        "of": dict(reviews.of),
        "agreement": reviews.agreement and {name: getattr(reviews.agreement, name) for name in _AGREEMENT},
        "items": [item_record(item) for item in reviews.items],
    }


def item_record(item: Item) -> dict[str, Any]:
    """Return an answer as JSON values; texts are None where the log does not have them."""
    return {
        "id": item.answer.id,
        "time": item.answer.time.isoformat(),
        "why": item.why,
        "words": item.words,
        **{name: getattr(item.answer, name) for name in _FIELDS},
        "question": item.texts.get("question"),
        "passages": passages_of(item.texts) or None,
        "response": item.texts.get("response"),
    }


def table(reviews: ReviewList) -> str:
    """Write the list as CSV, with columns for what a reviewer says. No spreadsheet computes its text."""
    stream = io.StringIO()
    head = ("id", "time", "why", "words", *_FIELDS, "question", "passages", "response", *_TO_FILL)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for item in reviews.items:
        row = item_record(item)
        row["passages"] = "\n\n".join(row["passages"] or ())
        writer.writerow([safe_cell(row.get(name)) for name in head])
    return stream.getvalue()
