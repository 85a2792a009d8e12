"""The page of what relevance adds: Markdown, a table, a figure, and everything as JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.figures.results import Difference, draw_differences
from experiments.figures.style import save, save_table
from experiments.results_page import Results, write_record
from experiments.worth import plan
from experiments.worth.measure import LEVELS, Gains, Line
from lrp4rag.classifiers.card import package_versions
from lrp4rag.training.folds import ONCE
from lrp4rag.training.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments worth"


def write_page(found: Gains, rows: Rows, out: Path, command: str, resamples: int) -> list[Path]:
    """README.md, results.json, gains.csv and the figure.

    Raises `InputError` where the folder has a page that this did not write.
    """
    write_record(
        out,
        KIND,
        found,
        command=command,
        protocol=replace(ONCE, repeats=found.seeds).words,
        resamples=resamples,
        reader=rows.store.configuration.reader["name"],
        versions=package_versions(),
    )
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md, gains.csv and the figure of the results.json that is there, which stands last.

    Raises `InputError` where that is not what `python -m experiments worth` writes.
    """
    results = Results.of(out)
    found = results.found(Gains)
    table = save_table(gains_table(found), out / "gains.csv")
    shown = [
        Difference(line.generator, f"{line.level}: {line.base}", line.together)
        for line in found.lines
        if line.added == plan.RELEVANCE
    ]
    figure = save(draw_differences(shown, "AUROC gained"), out / "gains")
    page = results.write_page(
        TEMPLATE,
        {"seeds": _range},
        found=found,
        resamples=results.get("resamples", int),
        protocol=ONCE,
        reader=results.get("reader", str),
        levels=[level for level in LEVELS if any(line.level == level for line in found.lines)],
        bases=list(plan.BASES),
        others={"tokens": [plan.PROVENANCE], "responses": [plan.MEANS, plan.ANOTHERS]},
        plan=plan,
        by={(line.level, line.base, line.added, line.generator): line for line in found.lines},
    )
    return [page, table, *figure, results.path]


def gains_table(found: Gains) -> pd.DataFrame:
    """A row for each line."""
    import pandas as pd

    return pd.DataFrame(map(_row, found.lines))


def _row(line: Line) -> dict[str, object]:
    return {
        "level": line.level,
        "base": line.base,
        "added": line.added,
        "generator": line.generator,
        "before": line.before.value,
        "after": line.after.value,
        "gain": line.gain.value,
        "low": line.gain.low,
        "high": line.gain.high,
        "low_together": line.together.low,
        "high_together": line.together.high,
        "least_seed": min(line.seeds),
        "most_seed": max(line.seeds),
    }


def _range(seeds: tuple[float | None, ...]) -> str:
    """+0.004 to +0.011; empty where there is no AUROC."""
    known = [one for one in seeds if one is not None]
    return "" if len(known) < len(seeds) else f"{min(known):+.3f} to {max(known):+.3f}"
