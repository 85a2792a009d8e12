"""Baselines on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Column, Table

from lrp4rag.report.localisation import LONGEST_NAME, stacked
from lrp4rag.terminal import open_console
from lrp4rag.text import one_line

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.baseline import Facts
    from lrp4rag.experiments.systems.comparison.single import CrossValidated

METRICS = {"auroc": "AUROC", "accuracy": "accuracy", "f1": "F1", "ece": "ECE"}


def print_baselines(facts: Mapping[str, Facts]) -> None:
    name = Column("name", no_wrap=True, min_width=max(map(len, facts)))
    table = Table(name, "system", "access", "learns from", "slow", box=None, pad_edge=False)
    for key, one in facts.items():
        table.add_row(key, one.title, one.access, one.training, "yes" if one.slow else "")
    console = open_console()
    console.print(table)
    console.print(
        "\nRun one: lrp4rag experiments baseline NAME --store STORE; each has a page in docs/baselines.",
        style="dim",
    )


def print_baseline(found: CrossValidated, facts: Facts) -> None:
    """A line for each generator, with 95 % intervals."""
    console = open_console()
    described = f" ({facts.paper})" if facts.paper else ""
    console.print(f"{facts.title}{described}; weights: {facts.weights}", style="dim")
    table = Table("", *METRICS.values(), "token AUROC", "span F1", show_lines=True)
    for generator, metrics in found.responses.items():
        line = found.lines[generator]
        parts = (line.tokens["auroc"], line.spans["f1"]) if line is not None else ()
        cells = [stacked(metrics[name]) for name in METRICS] + [stacked(one) for one in parts]
        table.add_row(one_line(generator, LONGEST_NAME), *cells)
    console.print(table)
    if found.answered < 1:
        console.print(f"{1 - found.answered:.1%} of the responses had no usable answer")
    console.print(f"chosen in the folds: {'; '.join(dict.fromkeys(found.chosen))}", style="dim")
