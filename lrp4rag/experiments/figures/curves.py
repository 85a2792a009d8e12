"""Figure 3 of LRP4RAG (arXiv 2408.15533): mean relevance by position, hallucinated against normal rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.figures.style import CLASSES, UNIT, legend_below, panels, themed
from lrp4rag.report.figure_text import SYMBOLS
from lrp4rag.training.metrics import Draws

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = NDArray[np.float64]
RESAMPLES = 1000
ALONG = {"prompt": "position in the prompt (%)"}


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Mean (positions) of `count` rows in logits, and its 95 % bootstrap interval over sources."""

    mean: Values
    low: Values
    high: Values
    count: int


Curves = dict[str, Band]  # "hallucinated" and "normal"


def curves(values: Values, labels: NDArray[np.bool_], groups: NDArray[np.str_]) -> Curves:
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


def table(found: Mapping[str, Mapping[str, Curves]]) -> pd.DataFrame:
    """One line a generator, vector, class and position. `found` is generator -> vector -> curves."""
    import pandas as pd

    return pd.concat(
        [
            pd.DataFrame(
                {
                    "generator": generator,
                    "vector": vector,
                    "class": name,
                    "rows": band.count,
                    "position": np.arange(len(band.mean)),
                    "mean": band.mean,
                    "low": band.low,
                    "high": band.high,
                }
            )
            for generator, vectors in found.items()
            for vector, by_class in vectors.items()
            for name, band in by_class.items()
        ],
        ignore_index=True,
    )


def draw(found: Mapping[str, Mapping[str, Curves]]) -> Figure:
    """A column a generator, a row a vector."""
    vectors = list(next(iter(found.values())))
    with themed():
        drawn, axes = panels(len(vectors), list(found), sharex=False)
        for row, vector in zip(axes, vectors, strict=True):
            for ax, by_vector in zip(row, found.values(), strict=True):
                _lines(ax, by_vector[vector])
                ax.set_xlabel(ALONG.get(vector, "position in the response (%)"))
            row[0].set_ylabel(f"mean {SYMBOLS[vector]}\n{UNIT}")
            _cut(row, [by_vector[vector] for by_vector in found.values()])
        legend_below(drawn, axes.flat)
        return drawn


def _lines(ax: Axes, by_class: Curves) -> None:
    import seaborn as sns

    for name, band in by_class.items():
        x = percent(len(band.mean))
        sns.lineplot(x=x, y=band.mean, color=CLASSES[name], label=name, ax=ax, lw=1.2, legend=False)
        ax.fill_between(x, band.low, band.high, color=CLASSES[name], alpha=0.25, lw=0)
    ax.set_xlim(0, 100)


def _cut(axes: Sequence[Axes], found: Sequence[Curves]) -> None:
    """Leave out peaks that would flatten all else, and say how far they go.

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


def percent(positions: int) -> Values:
    """The middle of each bin, in % of the length."""
    middles: Values = (np.arange(positions) + 0.5) * 100 / positions
    return middles
