"""A list of answers to review on a terminal, as JSON, and as CSV or JSON Lines for people to fill in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from lrp4rag.guard.monitoring.periods import shown
from lrp4rag.guard.monitoring.review import WHYS, Item, ReviewList
from lrp4rag.guard.second_opinion.agreement import Agreement
from lrp4rag.guard.service.reviews import passages_of
from lrp4rag.report.decision import ACTION_STYLES
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line, safe_cell, visible

QUOTED = 160
"""Characters of a question or an answer on a terminal."""
_NUMBERS = ("probability", "faithfulness", "fact_score")
_FIELDS = ("action", "reason", "rule", *_NUMBERS, "threshold", "topic", "generator")
_TO_FILL = ("said", "reviewer", "comment")


def render(found: ReviewList) -> RenderableType:
    """Each answer with why it is there, and how many there are that are not."""
    parts: list[RenderableType] = [Text(headline(found), style="bold")]
    for number, one in enumerate(found.items, start=1):
        parts += _lines(number, one)
    parts.append(Text())
    counted = [f"{found.shown(why)} of {found.of[why]} {why}" for why in WHYS if found.of[why]]
    if counted:
        parts.append(Text(f"On the list: {', '.join(counted)}."))
    if found.agreement is not None:
        parts.append(Text(agreement_words(found.agreement)))
    if found.items and not any(one.texts for one in found.items):
        parts.append(
            Text("The log keeps no texts of them: the server's setting keep_texts does.", style="dim")
        )
    if found.items:
        parts.append(Text("Record what you find: POST /v1/reviews (docs/serve.md).", style="dim"))
    return Parts(*parts)


def agreement_words(found: Agreement) -> str:
    """How often detector and judge say the same, of answers that were drawn for it."""
    told = f"Second opinions on {found.answers + found.unanswered + found.unjudged} answers that were drawn: "
    if found.share is None:
        return f"{told}none that both say something of."
    kappa = "" if found.kappa is None else f", kappa {found.kappa:.2f} [{found.low:.2f}, {found.high:.2f}]"
    return f"{told}detector and judge agree on {found.share:.0%} of {found.answers}{kappa}."


def headline(found: ReviewList) -> str:
    told = f"{found.period} UTC: {found.answers:,} answers, {found.reviewed:,} of them reviewed"
    told += f"; {found.unreadable:,} records could not be read" if found.unreadable else ""
    return told if found.items else f"{told}: nothing is left to review"


def _lines(number: int, one: Item) -> Iterator[Text]:
    answer = one.answer
    line = Text(f"\n{number:>3}  ").append(f"{answer.action:<9}", style=ACTION_STYLES[answer.action])
    yield line.append(f"{one_line(answer.id, 40)}  ").append(visible(one.words), style="bold")
    told = [shown(answer.time)]
    told += [
        f"{name.replace('_', ' ')} {value:.2f}"
        for name in _NUMBERS
        if (value := getattr(answer, name)) is not None
    ]
    told += [
        f"{name} {one_line(value, 40)}" for name in ("topic", "generator") if (value := getattr(answer, name))
    ]
    yield Text(f"     {', '.join(told)}", style="dim")
    for name in ("question", "response"):
        if name in one.texts:
            yield Text(f"     {name}: {one_line(one.texts[name], QUOTED)}")


def record(found: ReviewList) -> dict[str, Any]:
    """JSON values."""
    return {
        "start": found.period.start.isoformat(),
        "end": found.period.end.isoformat(),
        "answers": found.answers,
        "reviewed": found.reviewed,
        "unreadable": found.unreadable,
        "of": dict(found.of),
        "agreement": None if found.agreement is None else _agreement_record(found.agreement),
        "items": [item_record(one) for one in found.items],
    }


def _agreement_record(found: Agreement) -> dict[str, Any]:
    names = ("answers", "share", "kappa", "low", "high", "unanswered", "unjudged")
    return {name: getattr(found, name) for name in names}


def item_record(one: Item) -> dict[str, Any]:
    """JSON values of an answer; texts are None where they are not kept."""
    return {
        "id": one.answer.id,
        "time": one.answer.time.isoformat(),
        "why": one.why,
        "words": one.words,
        **{name: getattr(one.answer, name) for name in _FIELDS},
        "question": one.texts.get("question"),
        "passages": passages_of(one.texts) or None,
        "response": one.texts.get("response"),
    }


def require_known(path: Path) -> None:
    """Raise `InputError` for a file whose name does not end as one of ours."""
    if path.suffix not in (".csv", ".jsonl"):
        raise InputError("a list is written as .csv or .jsonl", path=path)


def content(found: ReviewList, path: Path) -> str:
    """What a file of the list holds, by the ending of its name."""
    if path.suffix == ".csv":
        return _csv(found)
    return "".join(f"{json.dumps(item_record(one))}\n" for one in found.items)


def _csv(found: ReviewList) -> str:
    """With columns for what a reviewer says. No spreadsheet computes its text."""
    written = io.StringIO()
    rows = [item_record(one) for one in found.items]
    head = ("id", "time", "why", "words", *_FIELDS, "question", "passages", "response", *_TO_FILL)
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        row["passages"] = "\n\n".join(row["passages"] or ())
        writer.writerow([safe_cell(row.get(name)) for name in head])
    return written.getvalue()
