"""`page`: a run as one self-contained page, with every failure in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from lrp4rag.guard.redteam.record import Changes, Record
from lrp4rag.guard.redteam.results import Result
from lrp4rag.guard.redteam.tables import HEAD, rows, title
from lrp4rag.guard.redteam.target import Answered
from lrp4rag.report.assets import hash_source
from lrp4rag.report.numbers import number
from lrp4rag.report.templates import encodable, html_template
from lrp4rag.source import Source

STYLE = Path(__file__).with_name("page.css")


def page(record: Record, results: Sequence[Result], found: Changes | None = None) -> str:
    """HTML without script, to be written as UTF-8; what cases and targets say is text in it."""
    style = STYLE.read_text(encoding="utf-8")
    failed = [one for one in results if not one.passed]
    text = html_template("page.html.j2", Path(__file__).parent).render(
        record=record,
        head=HEAD,
        rows=rows(record),
        kinds=[
            (title(kind), some)
            for kind in record.kinds
            if (some := [one for one in failed if one.case.kind == kind])
        ],
        failed=len(failed),
        known=_known,
        measured=_measured,
        changes=found,
        style=Markup(style),  # ours
        style_source=Markup(hash_source(style)),
    )
    return encodable(text)


def _known(source: Source) -> str:
    """What is known of a passage beside its text."""
    told = {**source.names, **({} if source.score is None else {"score": source.score})}
    return ", ".join(f"{name}: {value}" for name, value in told.items())


def _measured(one: Answered) -> str:
    told = {
        "decided by": one.rule,
        "probability": number(one.probability, 2),
        "faithfulness": number(one.faithfulness, 2),
        "fact score": number(one.fact_score, 2),
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value)
