"""A run on a terminal, and as one self-contained page with every failure in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from lrp4rag.guard.redteam.cases import ALL, ATTACKS, KINDS
from lrp4rag.guard.redteam.record import KindRow, Record, ShareRow
from lrp4rag.guard.redteam.targets import Answered, Result
from lrp4rag.report.assets import hash_source
from lrp4rag.report.numbers import bracketed, number
from lrp4rag.report.templates import encodable, html_template
from lrp4rag.source import Source
from lrp4rag.util.text import one_line

HEAD = ("kind", "as expected", "share [95 %]", "harm stopped", "harmless let through")
STYLE = Path(__file__).with_name("page.css")


def title(kind: str) -> str:
    """What a person calls a kind."""
    words = "all" if kind == ALL else KINDS.get(kind, kind)
    return f"attack: {words}" if kind in ATTACKS else words


def rows(record: Record) -> list[tuple[str, ...]]:
    """The cells of a table by kind, under `HEAD`."""
    return [(title(kind), *_cells(row)) for kind, row in record.kinds.items()]


def table(record: Record) -> Table:
    """For a terminal."""
    found = Table(box=None, pad_edge=False)
    for column, name in enumerate(HEAD):
        found.add_column(name, justify="right" if column else "left")
    for row, cells in enumerate(rows(record), start=1):
        last = row == len(record.kinds)
        found.add_row(*(Text(one_line(cell, 60), style="bold" if last else "") for cell in cells))
    return found


def below(record: Record, least: float) -> list[str]:
    """The kinds of which a smaller share has passed, in words."""
    return [
        f"{title(kind)}: {row.every.share:.2f}"
        for kind, row in record.kinds.items()
        if kind != ALL and row.every.share is not None and row.every.share < least
    ]


def _cells(row: KindRow) -> Sequence[str]:
    every = row.every
    interval = "" if every.low is None or every.high is None else f" {bracketed(every.low, every.high)}"
    share = "" if every.share is None else f"{every.share:.2f}{interval}"
    return (_of(every), share, _of(row.harmful), _of(row.harmless))


def _of(row: ShareRow) -> str:
    return f"{row.passed} of {row.cases}" if row.cases else ""


def page(record: Record, results: Sequence[Result]) -> str:
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
