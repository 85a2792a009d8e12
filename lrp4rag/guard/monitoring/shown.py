"""A drift on a terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.guard.monitoring.advice import advice
from lrp4rag.guard.monitoring.drift import Change, Drift
from lrp4rag.guard.monitoring.tests import Difference
from lrp4rag.guard.monitoring.windows import Window
from lrp4rag.guard.monitoring.words import (
    assumptions,
    change_words,
    group_words,
    headline,
    left_out_words,
    measure_words,
    p_words,
    power_words,
    value_words,
    window_words,
)

STYLES = {"worse": "bold red", "better": "bold green", "changed": "bold yellow", "": ""}


def render(drift: Drift) -> RenderableType:
    """All answers measure by measure, the groups that drifted, and what to do."""
    found = drift.found
    parts: list[RenderableType] = [
        Text(headline(drift), style="bold red" if found else "bold"),
        Text(f"baseline  {window_words(drift.baseline)}"),
        Text(f"window    {window_words(drift.window)}"),
        Text(),
        _table([one for one in drift.changes if one.group is None]),
    ]
    groups = [one for one in drift.changes if one.group is not None]
    if groups:
        drifted = [one for one in groups if one.drifted]
        said = f"Within topics and generators, {len(drifted)} of {len(groups)} comparisons drifted"
        parts += [Text(), Text(said + (":" if drifted else "."))]
        if drifted:
            parts.append(_table(drifted))
    parts.append(Text())
    parts += [Text(f"Next: {line}") for line in advice(drift)]
    if not found and (power := power_words(drift)):
        parts.append(Text(power))
    notes = [*assumptions(drift), *(f"Not compared: {line}." for line in left_out_words(drift))]
    parts += [Text(line, style="dim") for line in notes]
    return Parts(*parts)


def _table(changes: list[Change]) -> Table:
    """A line for each, below a line for its group."""
    table = Table(box=None, pad_edge=False)
    for name in ("", "baseline", "window", "change [95 %]", "p", ""):
        table.add_column(name, justify="left" if not name else "right", no_wrap=bool(name))
    group = None
    for one in changes:
        if one.group != group:
            group = one.group
            table.add_row(Text(group_words(group), style="bold"))
        difference = one.difference
        table.add_row(
            ("  " if group else "") + measure_words(one),
            *(value_words(one.measure, value) for value in (difference.before, difference.after)),
            change_words(one.measure, difference),
            p_words(one),
            Text(one.said, style=STYLES[one.said]),
        )
    return table


def record(drift: Drift) -> dict[str, Any]:
    """JSON values."""
    return {
        "drift": bool(drift.found),
        "headline": headline(drift),
        "alpha": drift.alpha,
        "least": drift.least,
        "baseline": _window_record(drift.baseline),
        "window": _window_record(drift.window),
        "changes": [_change_record(drift, one) for one in drift.changes],
        "not_compared": [
            {"measure": one.measure.name, **_group_record(one), "counts": list(one.counts)}
            for one in drift.left_out
        ],
        "next": advice(drift),
        "assumptions": assumptions(drift),
    }


def _window_record(window: Window) -> dict[str, Any]:
    return {
        "start": window.period.start.isoformat(),
        "end": window.period.end.isoformat(),
        "answers": len(window.answers),
        "retrievals": len(window.retrievals),
        "unreadable": window.unreadable,
    }


def _change_record(drift: Drift, one: Change) -> dict[str, Any]:
    return {
        "measure": one.measure.name,
        **_group_record(one),
        "category": one.category,
        **_difference_record(one.difference),
        "p": one.p,
        "adjusted_p": one.adjusted,
        "test": one.test,
        "family": one.family,
        "drifted": one.drifted,
        "said": one.said,
        "detectable": drift.detectable(one),
        "parts": None
        if one.parts is None
        else {name: _difference_record(part) for name, part in one.parts.items()},
    }


def _group_record(one: Any) -> dict[str, Any]:
    return {"group": None if one.group is None else asdict(one.group)}


def _difference_record(one: Difference) -> dict[str, Any]:
    return {
        "before": one.before,
        "after": one.after,
        "difference": one.value,
        "low": one.low,
        "high": one.high,
        "counts": list(one.counts),
    }
