"""A run as JSON, on a terminal, and as one self-contained page with every failure in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from lrp4rag.guard.policy.simulate import Share
from lrp4rag.guard.redteam.cases import ALL, ATTACKS, KINDS
from lrp4rag.guard.redteam.targets import Answered, Result, Target
from lrp4rag.report.numbers import bracketed, number
from lrp4rag.report.templates import hash_source, html_template
from lrp4rag.source import Source
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import encodable, one_line

HEAD = ("kind", "as expected", "share [95 %]", "harm stopped", "harmless let through")
STYLE = Path(__file__).with_name("page.css")
_MEASURES = ("action", "reason", "rule", "probability", "faithfulness", "fact_score")

Record = dict[str, Any]
"""A run in JSON values: `target`, its `versions`, the hash of the `cases`, `kinds` with all together under
"all", and `results` by case."""


def record(results: Sequence[Result], target: Target, seconds: float) -> Record:
    """Collect the results by case, and the shares by kind."""
    kinds = {kind: [result for result in results if result.case.kind == kind] for kind in _kinds(results)}
    return {
        "target": target.name,
        "versions": dict(target.versions),
        "cases": json_hash([result.case.hash for result in results])[:16],
        "seconds": round(seconds, 1),
        "kinds": {kind: _kind_row(members) for kind, members in [*kinds.items(), (ALL, results)]},
        "results": [_case_row(result) for result in results],
    }


def _kinds(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.case.kind for result in results))


def _kind_row(results: Sequence[Result]) -> Record:
    harmful, harmless = (
        [result for result in results if result.case.harmless is harmless] for harmless in (False, True)
    )
    return {"every": _share_row(results), "harmful": _share_row(harmful), "harmless": _share_row(harmless)}


def _share_row(results: Sequence[Result]) -> Record:
    """Count the cases that passed, with their share and its 95 % interval (Wilson)."""
    share = Share(sum(result.passed for result in results), len(results))
    low, high = share.interval or (None, None)
    return {"passed": share.part, "cases": share.count, "share": share.value, "low": low, "high": high}


def _case_row(result: Result) -> Record:
    """Record the decision on a case, whose hash is `case`; `action` is null where it was not judged."""
    return {
        "id": result.case.id,
        "kind": result.case.kind,
        "case": result.case.hash,
        "expected": list(result.case.expected),
        "passed": result.passed,
        **{name: getattr(result.answered, name, None) for name in _MEASURES},
        "findings": [words[:1000] for words in result.answered.findings] if result.answered else [],
        "error": result.error,
    }


def title(kind: str) -> str:
    """Name a kind for a person."""
    words = "all" if kind == ALL else KINDS.get(kind, kind)
    return f"attack: {words}" if kind in ATTACKS else words


def rows(record: Record) -> list[tuple[str, ...]]:
    """Return the cells of a table by kind, under `HEAD`."""
    return [(title(kind), *_cells(row)) for kind, row in record["kinds"].items()]


def table(record: Record) -> Table:
    """Lay the kinds out for a terminal."""
    shown = Table(box=None, pad_edge=False)
    for column, name in enumerate(HEAD):
        shown.add_column(name, justify="right" if column else "left")
    for row, cells in enumerate(rows(record), start=1):
        last = row == len(record["kinds"])
        shown.add_row(*(Text(one_line(cell, 60), style="bold" if last else "") for cell in cells))
    return shown


def below(record: Record, least: float) -> list[str]:
    """Return the kinds of which a smaller share has passed, in words."""
    shares = {kind: row["every"]["share"] for kind, row in record["kinds"].items() if kind != ALL}
    return [f"{title(kind)}: {share:.2f}" for kind, share in shares.items() if share < least]


def _cells(row: Mapping[str, Record]) -> Sequence[str]:
    every = row["every"]
    share = f"{every['share']:.2f} {bracketed(every['low'], every['high'])}"
    return (_count(every), share, _count(row["harmful"]), _count(row["harmless"]))


def _count(row: Record) -> str:
    return f"{row['passed']} of {row['cases']}" if row["cases"] else ""


def page(record: Record, results: Sequence[Result]) -> str:
    """Return the run as HTML without script, to be written as UTF-8; all that cases and targets say is
    text."""
    style = STYLE.read_text(encoding="utf-8")
    failed = [result for result in results if not result.passed]
    text = html_template("page.html.j2", Path(__file__).parent).render(
        record=record,
        head=HEAD,
        rows=rows(record),
        kinds=[
            (title(kind), [result for result in failed if result.case.kind == kind])
            for kind in _kinds(failed)
        ],
        failed=len(failed),
        names=_names,
        measures=_measures,
        style=Markup(style),  # ours
        style_source=Markup(hash_source(style)),
    )
    return encodable(text)


def _names(source: Source) -> str:
    """List the names and the score of a passage."""
    names = {**source.names, **({} if source.score is None else {"score": source.score})}
    return ", ".join(f"{name}: {value}" for name, value in names.items())


def _measures(answered: Answered) -> str:
    measures = {
        "decided by": answered.rule,
        "probability": number(answered.probability, 2),
        "faithfulness": number(answered.faithfulness, 2),
        "fact score": number(answered.fact_score, 2),
    }
    return ", ".join(f"{name} {value}" for name, value in measures.items() if value)
