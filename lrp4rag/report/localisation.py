"""Localisation metrics, printed."""

from __future__ import annotations

from rich.table import Table

from lrp4rag.report.numbers import METRICS, stacked
from lrp4rag.terminal import open_console
from lrp4rag.text import one_line
from lrp4rag.training.localisation import CONTROLS, Line, Localisation

COLUMNS = ("token AUROC", "token AP", "span F1", "sentence F1")
"""Precision and recall are in the record."""

LONGEST_NAME = 60
"""Characters of a generator's name."""

RESPONSES = ("auroc", "accuracy", "f1", "ece")


def print_localisation(found: Localisation, protocol: str) -> None:
    """A table for each generator; controls are dim. `protocol` says in words who learned from what."""
    console = open_console()
    console.print(f"{protocol}; 95 % bootstrap intervals over sources", style="dim")
    for generator, lines in found.lines.items():
        counts = f"{found.rows[generator]} responses, {found.hallucinated[generator]} hallucinated"
        title = f"{one_line(generator, LONGEST_NAME)}: {counts}"
        table = Table("", *COLUMNS, title=title, title_justify="left", show_lines=True)
        for name, line in lines.items():
            table.add_row(name, *_cells(line), style="dim" if name in CONTROLS else None)
        console.print(table)
        whole = Table("whole responses", *(METRICS[name] for name in RESPONSES), show_lines=True)
        for name, metrics in found.responses[generator].items():
            cells = [stacked(metrics[metric]) for metric in RESPONSES]
            whole.add_row(name, *cells, style="dim" if name in CONTROLS else None)
        console.print(whole)


def _cells(line: Line) -> list[str]:
    values = (line.tokens["auroc"], line.tokens["auprc"], line.spans["f1"], line.sentences["f1"])
    return [stacked(value) for value in values]
