"""Relevance between units: on the terminal, as a record, and as a heatmap."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.lrp.units import Unit, UnitRelevance
from lrp4rag.report.figure_text import drawing, new_figure, png_of
from lrp4rag.util.files import write_atomically
from lrp4rag.util.text import one_line

# A table with more columns than this shows the strongest ones of each row instead.
WIDE = 8
STRONGEST = 5
LABEL = 48
DPI = 150


def unit_record(id_: str, relevance: UnitRelevance) -> dict[str, Any]:
    """Return what `lrp4rag attribute --json` prints of an example; relevance in logits."""
    return {
        "id": id_,
        "composite": relevance.composite,
        "target": relevance.target,
        "layer": relevance.layer,
        "response": [_unit(unit) for unit in relevance.rows],
        "prompt": [_unit(unit) for unit in relevance.columns],
        "relevance": _rounded(relevance.values),
        "own": _rounded(relevance.own),
        "logits": _rounded(relevance.logits),
    }


def render_units(id_: str, relevance: UnitRelevance) -> RenderableType:
    """Render a table of rows by columns; with many columns, the strongest of each row."""
    settings = f"{relevance.target} logit, {relevance.composite}"
    if relevance.layer:
        settings += f", residual stream before layer {relevance.layer}"
    head = Text.assemble((one_line(id_, 60), "bold"), f"  relevance in logits ({settings})", style="default")
    wide = len(relevance.columns) > WIDE
    return Group(head, _table_of_strongest(relevance) if wide else _full_table(relevance))


def heatmap(relevance: UnitRelevance, path: Path) -> None:
    """Write a PNG: the side with more units down, where its text can be read, red against blue around 0.

    Raises `InputError` where the path is something else than a file.
    """
    import seaborn as sns

    response, prompt = (
        [one_line(unit.label, LABEL) for unit in units] for units in (relevance.rows, relevance.columns)
    )
    values, down, across, names = relevance.values, response, prompt, ("response", "prompt")
    if len(across) > len(down):
        values, down, across, names = values.T, across, down, names[::-1]
    size = (min(4 + 0.25 * len(across), 40), min(2.5 + 0.14 * len(down), 60))
    with sns.plotting_context("paper"), drawing():
        figure = new_figure(*size)
        axes = figure.subplots()
        sns.heatmap(
            values,
            ax=axes,
            cmap="vlag",
            center=0,
            robust=True,
            xticklabels=across if len(across) <= 150 else "auto",
            yticklabels=down if len(down) <= 400 else "auto",
            cbar_kws={"label": "relevance (logits)", "shrink": min(1.0, 3 / size[1])},
        )
        axes.tick_params(labelsize=6)
        axes.tick_params(axis="x", rotation=90)
        axes.set(ylabel=names[0], xlabel=names[1])
        write_atomically(path, png_of(figure, DPI))


def _full_table(relevance: UnitRelevance) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("response", overflow="fold")  # the numbers are never cut for it
    for unit in relevance.columns:
        table.add_column(_label(unit), justify="right", no_wrap=True)
    table.add_column("earlier tokens", justify="right", no_wrap=True)
    table.add_column("logit", justify="right", no_wrap=True)
    for unit, row, own, logit in zip(
        relevance.rows, relevance.values, relevance.own, relevance.logits, strict=True
    ):
        best = int(np.argmax(row)) if len(row) else -1
        cells = [Text(f"{value:.2f}", style="bold" if k == best else "") for k, value in enumerate(row)]
        table.add_row(Text(one_line(unit.label, LABEL)), *cells, f"{own:.2f}", f"{logit:.2f}")
    return table


def _table_of_strongest(relevance: UnitRelevance) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("response", overflow="ellipsis", no_wrap=True, max_width=LABEL)
    table.add_column("logit", justify="right")
    table.add_column("main sources", overflow="fold")
    for unit, row, logit in zip(relevance.rows, relevance.values, relevance.logits, strict=True):
        order = np.argsort(-np.abs(row))[:STRONGEST]
        strongest = "\n".join(f"{row[k]:+.2f}  {one_line(relevance.columns[k].label, LABEL)}" for k in order)
        table.add_row(Text(one_line(unit.label, LABEL)), f"{logit:.2f}", Text(strongest))
    return table


def _label(unit: Unit) -> str:
    """Shorten a column's heading: "passage 1" becomes "p1"."""
    return re.sub(r"^passage (\d+)$", r"p\1", one_line(unit.label, 20))


def _unit(unit: Unit) -> dict[str, Any]:
    return {"text": unit.label, "start": unit.start, "end": unit.end, "tokens": list(unit.tokens)}


def _rounded(values: Any) -> Any:
    return np.round(values.astype(float), 5).tolist()
