"""Figures 2 to 5 of LRP4RAG (arXiv 2408.15533): how relevance is distributed over the two classes.

R_prompt and R_response are means of the same matrix R*, so their means in logits are one and the same number;
only scaled within the row, as the paper's code does, do their boxes in Figure 2 differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.cache import Cell, Task
from experiments.figures.style import (
    CLASSES,
    DIVERGING,
    UNIT,
    blank,
    legend_below,
    not_stored,
    panels,
    percent,
    themed,
)
from experiments.figures.text import SYMBOLS
from experiments.paper.context import Context, Exhibit, Note
from experiments.paper.significance import (
    ALPHA,
    BAND_RESAMPLES,
    PositionTest,
    auroc_of_low,
    draw_tests,
    position_test,
    significance_table,
)
from experiments.paper.subset import Subset
from experiments.paper.sweep import row_means
from experiments.paper.thresholds import vectors_of
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.numbers import bracketed, number, p_value
from lrp4rag.training.metrics import Draws

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]

POSITIONS = 100  # the paper's resampling in these figures
RESAMPLES = 1000  # of the bands in Figure 3
SCALES = {"logits": f"mean {UNIT}", "within": "mean after scaling\neach row to (0, 1)"}
MATRICES = {
    "hallucinated": "hallucinated",
    "normal": "normal",
    "difference": "hallucinated minus normal",
}
# One huge bin (a prompt's first token) would leave all others grey.
SATURATED = 0.98


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Means (rows) of one generator's rows by vector, in logits and scaled within the row."""

    labels: Labels
    logits: dict[str, Values]
    within: dict[str, Values]

    def frame(self, scale: str) -> pd.DataFrame:
        """One line a row and vector: vector, class, mean."""
        classes = np.where(self.labels, *CLASSES)
        means: dict[str, Values] = getattr(self, scale)
        tables = [
            pd.DataFrame({"vector": name, "class": classes, "mean": row}) for name, row in means.items()
        ]
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Mean (positions) of `count` rows in logits, and its 95 % bootstrap interval over sources."""

    mean: Values
    low: Values
    high: Values
    count: int


Curves = dict[str, Band]
"""By class: "hallucinated" and "normal"."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanMatrices:
    """Means of resampled R* (response bins, prompt bins) in logits, over this many rows."""

    hallucinated: Values
    normal: Values
    rows: tuple[int, int]

    @property
    def difference(self) -> Values:
        """Hallucinated less normal."""
        return self.hallucinated - self.normal


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """One vector of one generator by position: the mean curves of the classes, and the test."""

    means: Curves
    test: PositionTest


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """By generator (and vector). `matrices` is there for generators whose rows have R*."""

    spreads: dict[str, Spread]
    along: dict[str, dict[str, Along]]
    matrices: dict[str, MeanMatrices]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Distributions:
    places = [(name, vector) for name, subset in context.subsets.items() for vector in vectors_of(subset)]
    resamples = min(BAND_RESAMPLES, context.settings.resamples)
    cells = [_cell(context.subsets[name], vector, resamples) for name, vector in places]
    along: dict[str, dict[str, Along]] = {name: {} for name in context.subsets}
    for (name, vector), found in zip(places, context.cache.all(cells, "distributions"), strict=True):
        along[name][vector] = found
    spreads = {
        name: spread({vector: subset.vectors(vector) for vector in vectors_of(subset)}, subset.labels)
        for name, subset in context.subsets.items()
    }
    matrices = {
        name: mean_matrices(np.stack([row.T for row in subset.vectors("matrix")]), subset.labels)
        for name, subset in context.subsets.items()
        if subset.admits("matrix")
    }
    left_out = (*context.lacking("prompt", "R_prompt"), *context.lacking(MATRIX, "Figure 4"))
    return Distributions(spreads, along, matrices, left_out)


def spread(vectors: Mapping[str, Sequence[NDArray[np.floating]]], labels: Labels) -> Spread:
    """Means of rows of relevance of any length, by the name of the vector ("prompt", "response")."""
    return Spread(
        labels=labels,
        logits={name: np.array([row.mean() for row in rows]) for name, rows in vectors.items()},
        within={name: row_means(rows, "within") for name, rows in vectors.items()},
    )


def class_curves(values: Values, labels: Labels, groups: NDArray[np.str_]) -> Curves:
    """Mean curves of resampled rows (rows, positions), by class."""
    sides = dict(zip(CLASSES, (labels, ~labels), strict=True))
    return {name: mean_band(values[side], groups[side]) for name, side in sides.items()}


def mean_band(values: Values, groups: NDArray[np.str_], *, resamples: int = RESAMPLES, seed: int = 0) -> Band:
    """The mean of rows (rows, positions); the interval draws sources, and all rows of a source with it."""
    draws = Draws.of(groups, resamples, seed)
    sums = np.zeros((draws.counts.shape[1], values.shape[1]))
    np.add.at(sums, draws.group_of, values)
    counts = draws.counts.astype(np.float64)
    means = (counts @ sums) / (counts @ np.bincount(draws.group_of))[:, None]
    # The first draw is the data itself.
    low, high = np.quantile(means[1:], [0.025, 0.975], axis=0)
    return Band(means[0], low, high, len(values))


def mean_matrices(matrices: NDArray[np.floating], labels: Labels) -> MeanMatrices:
    """Means by class of (rows, response bins, prompt bins)."""
    return MeanMatrices(
        hallucinated=matrices[labels].mean(0, dtype=np.float64),
        normal=matrices[~labels].mean(0, dtype=np.float64),
        rows=(int(labels.sum()), int((~labels).sum())),
    )


def _cell(subset: Subset, vector: str, resamples: int) -> Cell:
    key = {"what": "distribution", "vector": vector, "rows": subset.digest}
    return Cell(key | {"resamples": resamples}, Along, partial(_prepare, subset, vector, resamples))


def _prepare(subset: Subset, vector: str, resamples: int) -> Task:
    return partial(_along, subset.inputs(vector, POSITIONS), subset.labels, subset.groups, resamples)


def _along(values: Values, labels: Labels, groups: NDArray[np.str_], resamples: int) -> Along:
    test = position_test(values, labels, groups, resamples=resamples)
    return Along(class_curves(values, labels, groups), test)


def show(result: Distributions) -> Exhibit:
    tests = {name: {v: each.test for v, each in found.items()} for name, found in result.along.items()}
    means = {name: {v: each.means for v, each in found.items()} for name, found in result.along.items()}
    figures = {
        "figure-2": draw_spreads(result.spreads),
        "figure-3": draw_curves(means),
        "figure-5": draw_tests(tests),
    }
    tables = {
        "figure-2": spreads_table(result.spreads),
        "figure-3": curves_table(means),
        "figure-5": significance_table(tests),
    }
    if result.matrices:
        figures["figure-4"] = draw_matrices(result.matrices)
        tables["figure-4"] = matrices_table(result.matrices)
    return Exhibit(
        figures, tables, {"figure-2": _box_words(tables["figure-2"]), "figure-5": _test_words(tests)}
    )


def spreads_table(spreads: Mapping[str, Spread]) -> pd.DataFrame:
    """Quartiles by generator, scale, vector and class, and the AUROC of "hallucinated where low"."""
    parts = []
    for generator, found in spreads.items():
        for scale in SCALES:
            summary = found.frame(scale).groupby(["vector", "class"])["mean"].describe().reset_index()
            means: dict[str, Values] = getattr(found, scale)
            summary["auroc"] = [float(auroc_of_low(means[name], found.labels)) for name in summary["vector"]]
            summary.insert(0, "generator", generator)
            summary.insert(1, "scale", scale)
            parts.append(summary.rename(columns={"25%": "q1", "50%": "median", "75%": "q3"}))
    return pd.concat(parts, ignore_index=True)


def curves_table(found: Mapping[str, Mapping[str, Curves]]) -> pd.DataFrame:
    """One line a generator, vector, class and position. `found` is generator -> vector -> curves."""
    tables = [
        pd.DataFrame(
            {"generator": generator, "vector": vector, "class": name, "rows": band.count}
            | {"position": np.arange(len(band.mean))}
            | {"mean": band.mean, "low": band.low, "high": band.high}
        )
        for generator, vectors in found.items()
        for vector, by_class in vectors.items()
        for name, band in by_class.items()
    ]
    return pd.concat(tables, ignore_index=True)


def matrices_table(found: Mapping[str, MeanMatrices]) -> pd.DataFrame:
    """One line a generator and bin of R*."""
    tables = []
    for generator, means in found.items():
        response, prompt = np.indices(means.normal.shape)
        bins = {"generator": generator, "response_bin": response.ravel(), "prompt_bin": prompt.ravel()}
        tables.append(pd.DataFrame(bins | {name: getattr(means, name).ravel() for name in MATRICES}))
    return pd.concat(tables, ignore_index=True)


def draw_spreads(spreads: Mapping[str, Spread]) -> Figure:
    """Figure 2, a column a generator; means in logits above, scaled within the row below."""
    with themed():
        drawn, axes = panels(len(SCALES), list(spreads))
        for row, (scale, label) in zip(axes, SCALES.items(), strict=True):
            for ax, found in zip(row, spreads.values(), strict=True):
                _boxes(ax, found.frame(scale))
            row[0].set_ylabel(label)
        legend_below(drawn, axes.flat)
        return drawn


def _boxes(ax: Axes, frame: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        # seaborn 0.13 passes matplotlib 3.11 an argument that is deprecated there.
        warnings.filterwarnings("ignore", message="vert: bool was deprecated")
        sns.boxplot(
            frame.assign(vector=frame["vector"].map(SYMBOLS)),
            x="vector",
            y="mean",
            hue="class",
            hue_order=list(CLASSES),
            palette=CLASSES,
            ax=ax,
            width=0.7,
            gap=0.1,
            linewidth=0.9,
            saturation=1,
            flierprops={"marker": ".", "markersize": 2, "alpha": 0.5},
        )
    ax.set(xlabel="", ylabel="")


def draw_curves(found: Mapping[str, Mapping[str, Curves]]) -> Figure:
    """Figure 3, a column a generator, a row a vector."""
    vectors = [each for each in ("prompt", "response") if any(each in of for of in found.values())]
    with themed():
        drawn, axes = panels(len(vectors), list(found), sharex=False)
        for row, vector in zip(axes, vectors, strict=True):
            shown = {ax: of[vector] for ax, of in zip(row, found.values(), strict=True) if vector in of}
            for ax in row:
                if ax not in shown:
                    not_stored(ax)
                for name, band in shown.get(ax, {}).items():
                    places = percent(len(band.mean))
                    ax.plot(places, band.mean, color=CLASSES[name], label=name, lw=1.2)
                    ax.fill_between(places, band.low, band.high, color=CLASSES[name], alpha=0.25, lw=0)
                text = "prompt" if vector == "prompt" else "response"
                ax.set(xlim=(0, 100), xlabel=f"position in the {text} (%)")
            row[0].set_ylabel(f"mean {SYMBOLS[vector]}\n{UNIT}")
            _cut_peaks([*shown], [*shown.values()])
        legend_below(drawn, axes.flat)
        return drawn


def _cut_peaks(axes: Sequence[Axes], found: Sequence[Curves]) -> None:
    """Leave out peaks that would flatten all else, and annotate their height.

    The prompt's first token may take a hundred times the relevance of any other, in both classes.
    """
    bounds = np.concatenate([[band.low, band.high] for by_class in found for band in by_class.values()])
    low, high = np.quantile(bounds, [0.02, 0.98])
    room = (high - low) / 2
    shown = max(low - room, bounds.min()), min(high + room, bounds.max())
    for ax, by_class in zip(axes, found, strict=True):
        means = np.array([band.mean for band in by_class.values()])
        for value, edge, place in ((means.min(), shown[0], "bottom"), (means.max(), shown[1], "top")):
            if not shown[0] <= value <= shown[1]:
                x = percent(means.shape[1])[np.argwhere(means == value)[0, 1]]
                ax.annotate(f"to {value:.2g}", (x, edge), (6, 0), textcoords="offset points", va=place)
        if shown != (bounds.min(), bounds.max()):
            ax.set_ylim(*shown)


def draw_matrices(found: Mapping[str, MeanMatrices]) -> Figure:
    """Figure 4, a row a generator; one symmetric scale for all panels shows the difference in proportion."""
    matrices = [[getattr(means, name) for name in MATRICES] for means in found.values()]
    size = np.abs(np.concatenate([matrix.ravel() for row in matrices for matrix in row]))
    limit = float(np.quantile(size, SATURATED)) or float(size.max()) or 1.0
    with themed(), sns.axes_style("ticks"):
        drawn = blank((8.0, 2.1 * len(found) + 0.6))
        axes = drawn.subplots(len(found), 3, squeeze=False, sharex=True, sharey=True)
        for row, generator, shown in zip(axes, found, matrices, strict=True):
            for ax, matrix in zip(row, shown, strict=True):
                _heatmap(ax, matrix, limit)
            row[0].set_ylabel(f"{generator}\nresponse (%)")
        for top, bottom, title in zip(axes[0], axes[-1], MATRICES.values(), strict=True):
            top.set_title(title)
            bottom.set_xlabel("prompt (%)")
        colourbar = drawn.colorbar(axes[0, 0].collections[0], ax=axes, aspect=40, extend="both")
        colourbar.set_label(f"mean {UNIT}")
        colourbar.outline.set_visible(False)
        return drawn


def _heatmap(ax: Axes, matrix: Values, limit: float) -> None:
    scale = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit, "cbar": False}
    # As an image inside the SVG: thousands of paths would make it megabytes.
    sns.heatmap(matrix, ax=ax, rasterized=True, xticklabels=False, yticklabels=False, **scale)
    rows, columns = matrix.shape
    ax.set_xticks([0, columns / 2, columns], ["0", "50", "100"])
    ax.set_yticks([0, rows / 2, rows], ["0", "50", "100"])


def _box_words(table: pd.DataFrame) -> pd.DataFrame:
    words = table[["generator", "scale", "vector", "class", "count"]].assign(count=table["count"].astype(int))
    for name in ("q1", "median", "q3"):
        words[name] = table[name].map(lambda value: f"{value:.3g}")
    return words.assign(**{"AUROC of low": table["auroc"].map(number)})


def _test_words(tests: Mapping[str, Mapping[str, PositionTest]]) -> pd.DataFrame:
    """Each test of many positions in one line."""
    return pd.DataFrame(
        {"generator": name, "vector": vector} | _test_line(test)
        for name, each in tests.items()
        for vector, test in each.items()
    )


def _test_line(test: PositionTest) -> dict[str, Any]:
    at = int(np.argmax(np.abs(test.rank_biserial)))
    return {
        f"median p < {ALPHA} at": f"{np.mean(test.median_p < ALPHA):.0%} of positions",
        f"corrected p < {ALPHA} at": f"{np.mean(test.adjusted < ALPHA):.0%} of positions",
        "smallest corrected p": p_value(float(test.adjusted.min())),
        "strongest at": f"{100 * (at + 0.5) / len(test.p):.0f} %",
        "AUROC of low there": f"{test.auroc[at]:.3f} {bracketed(test.low[at], test.high[at])}",
        "median AUROC of low": number(float(np.median(test.auroc))),
    }
