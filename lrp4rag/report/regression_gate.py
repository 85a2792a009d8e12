"""The gate on a terminal and as JSON: what got worse, against which baseline, and by which examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.guard.evaluation.measures import MEASURES
from lrp4rag.guard.evaluation.regression_gate import Gate, State
from lrp4rag.report.numbers import difference, number
from lrp4rag.util.text import one_line

STYLES: dict[State, str] = {"fails": "bold red", "not ruled out": "yellow", "passes": "green"}
SHOWN = 8
"""Ids that are listed for one reason."""
FEW = 30
"""Sources below which an interval rarely excludes anything."""
LONGEST = 60


def render_gate(gate: Gate, baseline: str) -> RenderableType:
    """The measures side by side, and the outcome in the last line."""
    pairs = gate.pairs
    parts: list[RenderableType] = [
        Text(
            f"Compared with {one_line(baseline, LONGEST)}: {len(pairs.results)} examples of {gate.sources} "
            "sources",
            style="bold",
        )
    ]
    for words, ids in (
        ("in DATA only, left out", pairs.only_now),
        ("in the baseline only, left out", pairs.only_before),
        ("with other texts than in the baseline, left out", pairs.other_texts),
        ("with other labels; both are measured by those of DATA", pairs.relabelled),
    ):
        parts += [Text(f"  {len(ids)} {words}: {_listed(ids)}")] if ids else []
    if gate.made_with:
        told = [
            f"{one_line(name, 40)} {_value(was)}, now {_value(now)}"
            for name, (was, now) in gate.made_with.items()
        ]
        parts.append(Text(f"  made with another: {'; '.join(told)}"))
    parts.append(_table(gate))
    for words, ids, style in (
        ("wrong, and were right", gate.newly_wrong, "red"),
        ("without a verdict, and had one", gate.lost, "red"),
        ("right, and were wrong", gate.newly_right, "green"),
    ):
        parts += [Text(f"  {len(ids)} are {words}: {_listed(ids)}", style=style)] if ids else []
    return Group(*parts, *_outcome(gate))


def _table(gate: Gate) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("", "baseline", "now", "drop [95 %]", ""):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for name, one in gate.changes.items():
        style = STYLES.get(one.state, "dim")
        cells = (number(one.before) or "-", number(one.now) or "-", difference(one.drop) or "-")
        table.add_row(MEASURES[name].words, *cells, Text(one.state, style=style))
    return table


def _outcome(gate: Gate) -> list[Text]:
    more = f"more than {gate.max_drop:g}"
    found = []
    if gate.open:
        words = f"Not ruled out: a drop of {more} in {_named(gate.open)}. More examples would tell."
        found.append(Text(words, style="yellow"))
    if gate.sources < FEW:
        words = f"{gate.sources} sources are few: only large drops can be told from chance."
        found.append(Text(words, style="dim"))
    if gate.failed:
        words = f"The gate fails, worse by {more} and not by chance: {_named(gate.failed)}."
        return [*found, Text(words, style="bold red")]
    return [*found, Text("The gate passes.", style="bold green")]


def gate_record(gate: Gate, baseline: str) -> dict[str, Any]:
    """JSON values."""
    pairs = gate.pairs
    return {
        "baseline": baseline,
        "passed": not gate.failed,
        "failed": list(gate.failed),
        "not_ruled_out": list(gate.open),
        "max_drop": gate.max_drop,
        "compared": len(pairs.results),
        "sources": gate.sources,
        "only_now": list(pairs.only_now),
        "only_baseline": list(pairs.only_before),
        "other_texts": list(pairs.other_texts),
        "relabelled": list(pairs.relabelled),
        "newly_wrong": list(gate.newly_wrong),
        "newly_right": list(gate.newly_right),
        "lost": list(gate.lost),
        "made_with": {name: list(both) for name, both in gate.made_with.items()},
        "measures": {
            name: {
                "baseline": one.before,
                "now": one.now,
                "drop": one.drop.model_dump(),
                "better": MEASURES[name].better,
                "state": one.state,
            }
            for name, one in gate.changes.items()
        },
    }


def _named(names: Sequence[str]) -> str:
    return ", ".join(MEASURES[name].words for name in names)


def _listed(ids: Sequence[str]) -> str:
    more = ", ..." if len(ids) > SHOWN else ""
    return ", ".join(one_line(one, LONGEST) for one in ids[:SHOWN]) + more


def _value(given: object) -> str:
    if isinstance(given, float):
        return f"{given:.3g}"
    return "none" if given is None else one_line(str(given), 16)
