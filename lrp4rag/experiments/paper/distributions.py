"""Figures 2 to 5 of LRP4RAG (arXiv 2408.15533): how relevance is distributed over the two classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.figures import curves, heatmaps, positions, spread
from lrp4rag.experiments.figures.curves import Curves
from lrp4rag.experiments.figures.heatmaps import MeanMatrices
from lrp4rag.experiments.figures.paper import POSITIONS
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import Note, Part
from lrp4rag.experiments.paper.significance import ALPHA, BAND_RESAMPLES, PositionTest, position_test
from lrp4rag.experiments.paper.thresholds import shared_vectors
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.numbers import number, p_value
from lrp4rag.training.cache import Cell, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """One vector of one generator by position: the mean curves of the classes, and the test."""

    means: Curves
    test: PositionTest


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """By generator (and vector). `matrices` is there for generators whose rows have R*."""

    spreads: dict[str, spread.Spread]
    along: dict[str, dict[str, Along]]
    matrices: dict[str, MeanMatrices]
    left_out: tuple[Note, ...]


def distributions(context: Context) -> Distributions:
    vectors = shared_vectors(context)
    places = [(name, vector) for name in context.parts for vector in vectors]
    resamples = min(BAND_RESAMPLES, context.settings.resamples)
    cells = [_cell(context.parts[name], vector, resamples) for name, vector in places]
    along: dict[str, dict[str, Along]] = {name: {} for name in context.parts}
    for (name, vector), found in zip(places, context.cache.all(cells, "distributions"), strict=True):
        along[name][vector] = found
    spreads = {
        name: spread.spread({vector: part.vectors(vector) for vector in vectors}, part.labels)
        for name, part in context.parts.items()
    }
    matrices = {
        name: heatmaps.mean_matrices(np.stack([row.T for row in part.vectors("matrix")]), part.labels)
        for name, part in context.parts.items()
        if part.admits("matrix")
    }
    left_out = (*context.lacking("prompt", "R_prompt"), *context.lacking(MATRIX, "Figure 4"))
    return Distributions(spreads, along, matrices, left_out)


def show(result: Distributions) -> Exhibit:
    tests = {name: {v: each.test for v, each in found.items()} for name, found in result.along.items()}
    means = {name: {v: each.means for v, each in found.items()} for name, found in result.along.items()}
    figures: dict[str, Figure] = {
        "figure-2": spread.draw(result.spreads),
        "figure-3": curves.draw(means),
        "figure-5": positions.draw(tests),
    }
    tables = {
        "figure-2": spread.table(result.spreads),
        "figure-3": curves.table(means),
        "figure-5": positions.table(tests),
    }
    if result.matrices:
        figures["figure-4"] = heatmaps.draw(result.matrices)
        tables["figure-4"] = heatmaps.table(result.matrices)
    return Exhibit(figures, tables, {"figure-2": _boxes(tables["figure-2"]), "figure-5": _tests(tests)})


def _boxes(table: pd.DataFrame) -> pd.DataFrame:
    words = table[["generator", "scale", "vector", "class", "count"]].assign(count=table["count"].astype(int))
    for name in ("q1", "median", "q3"):
        words[name] = table[name].map(lambda value: f"{value:.3g}")
    return words.assign(**{"AUROC of low": table["auroc"].map(number)})


def _tests(tests: dict[str, dict[str, PositionTest]]) -> pd.DataFrame:
    """Each test of many positions in one line."""
    import pandas as pd

    return pd.DataFrame(
        _test(name, vector, test) for name, each in tests.items() for vector, test in each.items()
    )


def _test(generator: str, vector: str, test: PositionTest) -> dict[str, Any]:
    strongest = int(np.argmax(np.abs(test.rank_biserial)))
    return {
        "generator": generator,
        "vector": vector,
        f"median p < {ALPHA} at": f"{np.mean(test.median_p < ALPHA):.0%} of positions",
        f"corrected p < {ALPHA} at": f"{np.mean(test.adjusted < ALPHA):.0%} of positions",
        "smallest corrected p": p_value(float(test.adjusted.min())),
        "strongest at": f"{100 * (strongest + 0.5) / len(test.p):.0f} %",
        "AUROC of low there": f"{test.auroc[strongest]:.3f} "
        f"[{test.low[strongest]:.2f}, {test.high[strongest]:.2f}]",
        "median AUROC of low": number(float(np.median(test.auroc))),
    }


def _cell(part: Part, vector: str, resamples: int) -> Cell:
    key = {"what": "distribution", "vector": vector, "rows": part.digest}
    return Cell(key | {"resamples": resamples}, Along, partial(_prepare, part, vector, resamples))


def _prepare(part: Part, vector: str, resamples: int) -> Task:
    return partial(_along, part.inputs(vector, POSITIONS), part.labels, part.groups, resamples)


def _along(values: Values, labels: NDArray[np.bool_], groups: NDArray[np.str_], resamples: int) -> Along:
    test = position_test(values, labels, groups, resamples=resamples)
    return Along(curves.curves(values, labels, groups), test)
