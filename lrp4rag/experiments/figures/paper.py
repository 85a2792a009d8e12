"""The statistics of LRP4RAG (arXiv 2408.15533) on the rows of a store: Tables 1 and 5, Figures 2 to 5.

Each exhibit is a function of rows, with a panel for each generator. R_prompt is left out where the store
has none, and Figure 4 is there only where it has R*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.figures import curves, heatmaps, positions, spread, thresholds
from lrp4rag.experiments.figures.style import save, save_table
from lrp4rag.experiments.paper.significance import position_test
from lrp4rag.experiments.paper.sweep import SCALINGS, threshold_method
from lrp4rag.lrp.resample import resample

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from lrp4rag.training.rows import Rows

POSITIONS = 100  # the paper's resampling in these figures
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """A figure, and by name the numbers that it shows."""

    figure: Figure
    tables: dict[str, pd.DataFrame]

    def write(self, folder: str | Path, name: str) -> list[Path]:
        """Write name.png, name.svg and one CSV file a table."""
        folder = Path(folder)
        written = list(save(self.figure, folder / name))
        return written + [save_table(table, folder / f"{title}.csv") for title, table in self.tables.items()]


def threshold_tables(rows: Rows) -> Exhibit:
    """Tables 1 and 5: the threshold method by both readings of its scaling."""
    found = by_generator(
        rows,
        lambda part: [
            threshold_method(name, vectors, part.labels, part.groups, scaling=scaling)
            for scaling in SCALINGS
            for name, vectors in vectors_of(part).items()
        ],
    )
    # Across rows both vectors have the same mean: one row of panels says it.
    shown = {
        generator: [method for method in methods if (method.vector, method.scaling) != ("prompt", "across")]
        for generator, methods in found.items()
    }
    return Exhibit(
        thresholds.draw(shown),
        {"tables-1-and-5": thresholds.best_table(found), "threshold-sweep": thresholds.sweep_table(found)},
    )


def figure_2(rows: Rows) -> Exhibit:
    """Box plots of mean relevance."""
    found = by_generator(rows, lambda part: spread.spread(vectors_of(part), part.labels))
    return Exhibit(spread.draw(found), {"figure-2": spread.table(found)})


def figure_3(rows: Rows) -> Exhibit:
    """Mean relevance by position."""
    found = by_generator(
        rows,
        lambda part: {
            name: curves.curves(values, part.labels, part.groups) for name, values in _resampled(part).items()
        },
    )
    return Exhibit(curves.draw(found), {"figure-3": curves.table(found)})


def figure_4(rows: Rows) -> Exhibit:
    """Mean matrices R*; raises `InputError` where the store has no R*."""
    found = by_generator(rows, lambda part: heatmaps.mean_matrices(part.matrices, part.labels))
    return Exhibit(heatmaps.draw(found), {"figure-4": heatmaps.table(found)})


def figure_5(rows: Rows) -> Exhibit:
    """Mann-Whitney U by position."""
    found = by_generator(
        rows,
        lambda part: {
            name: position_test(values, part.labels, part.groups) for name, values in _resampled(part).items()
        },
    )
    return Exhibit(positions.draw(found), {"figure-5": positions.table(found)})


EXHIBITS: dict[str, Callable[[Rows], Exhibit]] = {
    "tables-1-and-5": threshold_tables,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": figure_5,
}


def by_generator(rows: Rows, measure: Callable[[Rows], T]) -> dict[str, T]:
    """What `measure` finds on the rows of each generator, in the order in which they appear."""
    return {name: measure(rows.select_generator(name)) for name in dict.fromkeys(map(str, rows.generators))}


def vectors_of(rows: Rows) -> dict[str, list[NDArray[np.float32]]]:
    """R_prompt (where there is one) and R_response of every row."""
    relevances = rows.relevances
    prompts = [relevance.prompt for relevance in relevances if relevance.prompt is not None]
    found = {"prompt": prompts} if len(prompts) == len(relevances) else {}
    return found | {"response": [relevance.response for relevance in relevances]}


def _resampled(rows: Rows) -> dict[str, NDArray[np.float64]]:
    return {
        name: np.stack([resample(vector, POSITIONS) for vector in vectors])
        for name, vectors in vectors_of(rows).items()
    }
