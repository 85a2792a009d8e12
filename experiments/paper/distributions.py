"""Figures 2 to 5 of LRP4RAG (arXiv 2408.15533): how relevance is distributed over the two classes.

R_prompt and R_response are means of the same matrix R*, so their means in logits are one and the same number;
only scaled within the row, as the paper's code does, do their boxes in Figure 2 differ.

Figure 5 tests by position whether relevance tells hallucinated from normal responses (Mann-Whitney U): the
median p over 200 draws of 200 samples. That p depends on how many samples are drawn, so it stands beside what
does not: the effect size on all rows, and p on all rows, corrected for the number of positions.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, mannwhitneyu, rankdata

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
from experiments.metrics import bootstrap
from experiments.paper.context import Context, Exhibit, Note
from experiments.paper.data import Floats, Groups, Labels
from experiments.paper.thresholds import row_means, vectors_of
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.numbers import bracketed, number, p_value
from lrp4rag.training.metrics import Draws
from lrp4rag.util.errors import InputError

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
DRAWS, SAMPLES = 200, 200  # the paper's
BAND_RESAMPLES = 200
ALPHA = 0.05
TEST_COLOURS = {"prompt": "#cc79a7", "response": "#009e73", "total": "#56b4e9"}
FLOOR = 1e-12  # smaller p are drawn here


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Means (rows) of one generator's rows by vector, in logits and scaled within the row."""

    labels: Labels
    logits: dict[str, Floats]
    within: dict[str, Floats]

    def frame(self, scale: str) -> pd.DataFrame:
        """One line a row and vector: vector, class, mean."""
        classes = np.where(self.labels, *CLASSES)
        means: dict[str, Floats] = getattr(self, scale)
        tables = [
            pd.DataFrame({"vector": name, "class": classes, "mean": row}) for name, row in means.items()
        ]
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Mean (positions) of `count` rows in logits, and its 95 % bootstrap interval over sources."""

    mean: Floats
    low: Floats
    high: Floats
    count: int


Curves = dict[str, Band]
"""By class: "hallucinated" and "normal"."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanMatrices:
    """Means of resampled R* (response bins, prompt bins) in logits, over this many rows."""

    hallucinated: Floats
    normal: Floats
    rows: tuple[int, int]

    @property
    def difference(self) -> Floats:
        """Hallucinated less normal."""
        return self.hallucinated - self.normal


@dataclass(frozen=True, slots=True, eq=False)
class PositionTest:
    """Arrays (positions); positions are the bins of a resampled vector.

    * `median_p`: median over `draws` draws of `samples` rows of each class, two-sided. No p-value itself.
    * `p`, `adjusted`: on all rows, and the same after Benjamini and Yekutieli over positions (the false
      discovery rate under any dependence; neighbouring positions are anything but independent).
    * `auroc`: how often a hallucinated row's relevance is the lower of a pair, with its 95 % bootstrap
      interval over sources, `low` to `high`. 0.5 is no effect.
    """

    median_p: Floats
    p: Floats
    adjusted: Floats
    auroc: Floats
    low: Floats
    high: Floats
    draws: int
    samples: int

    @property
    def rank_biserial(self) -> Floats:
        """The effect size from -1 to 1, positive where hallucinated rows have less relevance."""
        return 2 * self.auroc - 1

    def table(self) -> pd.DataFrame:
        """One row a position."""
        return pd.DataFrame(
            {
                "position": np.arange(len(self.p)),
                "median_p": self.median_p,
                "p": self.p,
                "p_adjusted": self.adjusted,
                "auroc": self.auroc,
                "auroc_low": self.low,
                "auroc_high": self.high,
                "rank_biserial": self.rank_biserial,
            }
        )


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
    resamples = min(BAND_RESAMPLES, context.settings.resamples)
    places = [(subset, vector) for subset in context.subsets.values() for vector in vectors_of(subset)]
    calls = [(subset.inputs(vector, POSITIONS), *subset.truth, resamples) for subset, vector in places]
    along: dict[str, dict[str, Along]] = {name: {} for name in context.subsets}
    for (subset, vector), one in zip(places, context.map(_along, calls, "distributions"), strict=True):
        along[subset.generator][vector] = one
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


def class_curves(values: Floats, labels: Labels, groups: Groups) -> Curves:
    """Mean curves of resampled rows (rows, positions), by class."""
    sides = dict(zip(CLASSES, (labels, ~labels), strict=True))
    return {name: mean_band(values[side], groups[side]) for name, side in sides.items()}


def mean_band(values: Floats, groups: Groups, *, resamples: int = RESAMPLES, seed: int = 0) -> Band:
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


def _along(values: Floats, labels: Labels, groups: Groups, resamples: int) -> Along:
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
            means: dict[str, Floats] = getattr(found, scale)
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


def _heatmap(ax: Axes, matrix: Floats, limit: float) -> None:
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


# Figure 5.


def position_test(
    values: Floats,
    labels: Labels,
    groups: Groups,
    *,
    draws: int = DRAWS,
    samples: int = SAMPLES,
    resamples: int = BAND_RESAMPLES,
    seed: int = 0,
) -> PositionTest:
    """Test each column of `values` (rows, positions). A class with fewer rows than `samples` sets the number.

    Raises `InputError` where a class has no rows.
    """
    low, high = values[labels], values[~labels]
    samples = min(samples, len(low), len(high))
    if not samples:
        raise InputError("the test needs hallucinated and normal responses")
    generator = np.random.default_rng(seed)
    drawn = [
        _p(*(side[generator.choice(len(side), samples, replace=False)] for side in (low, high)))
        for _ in range(draws)
    ]
    p = _p(low, high)

    def by_position(rows: NDArray[np.intp]) -> dict[str, float]:
        return {str(k): x for k, x in enumerate(auroc_of_low(values[rows], labels[rows]))}

    band = bootstrap(by_position, groups, resamples=resamples, seed=seed).values()
    return PositionTest(
        median_p=np.median(drawn, axis=0),
        p=p,
        adjusted=false_discovery_control(p, method="by"),
        auroc=np.array([interval.value for interval in band], dtype=float),
        low=np.array([interval.low for interval in band], dtype=float),
        high=np.array([interval.high for interval in band], dtype=float),
        draws=draws,
        samples=samples,
    )


def significance_table(found: Mapping[str, Mapping[str, PositionTest]]) -> pd.DataFrame:
    """One line a generator, vector and position. `found` is generator -> vector -> test."""
    tables = {
        (generator, vector): test.table()
        for generator, each in found.items()
        for vector, test in each.items()
    }
    return pd.concat(tables, names=["generator", "vector"]).reset_index(["generator", "vector"])


def draw_tests(found: Mapping[str, Mapping[str, PositionTest]]) -> Figure:
    """A column a generator: median p over draws, p on all rows corrected for positions, effect size."""
    with themed():
        drawn, axes = panels(3, list(found), height=2.0)
        for column, tests in zip(axes.T, found.values(), strict=True):
            for vector, test in tests.items():
                _line(column[0], np.maximum(test.median_p, FLOOR), vector)
                _line(column[1], np.maximum(test.adjusted, FLOOR), vector)
                _line(column[2], test.auroc, vector)
                places = percent(len(test.auroc))
                column[2].fill_between(
                    places, test.low, test.high, color=TEST_COLOURS[vector], alpha=0.2, lw=0
                )
            column[2].set(xlim=(0, 100), xlabel="position (%)")
        for ax in axes[:2].flat:
            ax.axhline(ALPHA, color="0.2", ls="--", lw=1, label="p = 0.05")
            ax.set_yscale("log")
        for ax in axes[2]:
            ax.axhline(0.5, color="0.2", ls=":", lw=1, label="no effect")
        first = next(iter(next(iter(found.values())).values()))
        axes[0, 0].set_ylabel(f"median p\n({first.draws} draws of {first.samples} + {first.samples})")
        axes[1, 0].set_ylabel("p on all rows,\ncorrected (BY)")
        axes[2, 0].set_ylabel("AUROC of\nlow relevance")
        legend_below(drawn, axes.flat)
        return drawn


def auroc_of_low(values: Floats, labels: Labels) -> Floats:
    """AUROC of "hallucinated where low" by column of (rows, ...): U / (n m); NaN without both classes."""
    some, others = int(labels.sum()), int((~labels).sum())
    if not some or not others:
        return np.full(values.shape[1:], np.nan)
    ranks = rankdata(values, axis=0)
    result: Floats = 1 - (ranks[labels].sum(0) - some * (some + 1) / 2) / (some * others)
    return result


def _p(low: Floats, high: Floats) -> Floats:
    found: Floats = mannwhitneyu(low, high, axis=0, method="asymptotic").pvalue
    return found


def _line(ax: Axes, values: Floats, vector: str) -> None:
    ax.plot(percent(len(values)), values, color=TEST_COLOURS[vector], label=SYMBOLS[vector], lw=1.2)
