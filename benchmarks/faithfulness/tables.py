"""Tables for the terminal and in Markdown, with a sentence of verdict under each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.faithfulness.statistics import Comparison
from lrp4rag.report.markdown import text

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADER = ("method", "value [95 % interval]", "best of ours minus it")


def verdict_sentence(comparison: Comparison) -> str:
    """Whether the best of our composites is best, level with the best other method, or worse."""
    if comparison.verdict is None or comparison.ours is None or comparison.other is None:
        return "No verdict: it needs one of our composites and one other method."
    words = {
        "best": "is best: better than the best other method",
        "level": "is level with the best other method",
        "worse": "is WORSE than the best other method",
    }[comparison.verdict]
    difference = comparison.differences[comparison.other]
    return (
        f"{comparison.ours} {words}, {comparison.other} (difference {difference}; "
        "paired bootstrap over samples)."
    )


def lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """One line a method, the best first."""
    ranked = sorted(comparison.methods, key=lambda name: -comparison.methods[name].value)
    return [
        (name, str(comparison.methods[name]), str(comparison.differences.get(name, ""))) for name in ranked
    ]


def markdown(results: dict[str, dict[str, Comparison]], titles: dict[str, dict[str, str]], note: str) -> str:
    parts: list[str] = ["# Faithfulness", text(note)]  # it names a reader, and data
    for experiment, comparisons in results.items():
        for measure, comparison in comparisons.items():
            rows = [HEADER, ("---",) * len(HEADER), *lines(comparison)]
            table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
            title = f"## {experiment}: {measure}\n\n{titles[experiment][measure]}"
            parts.append(f"{title}\n\n{table}\n\n{verdict_sentence(comparison)}")
    return "\n\n".join(parts) + "\n"


def terminal(
    results: dict[str, dict[str, Comparison]], titles: dict[str, dict[str, str]]
) -> list[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    shown: list[RenderableType] = []
    for experiment, comparisons in results.items():
        for measure, comparison in comparisons.items():
            # Text, since brackets of intervals would be read as styles.
            table = Table(
                *HEADER,
                title=Text(f"{experiment}: {measure} ({titles[experiment][measure]})"),
                title_justify="left",
            )
            for row in lines(comparison):
                table.add_row(*(Text(cell) for cell in row))
            shown += [table, Text(verdict_sentence(comparison) + "\n")]
    return shown
