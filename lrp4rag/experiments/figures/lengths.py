"""Tables 3 and 4 of LRP4RAG (arXiv 2408.15533): what the resampling length L_new is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Metrics
from lrp4rag.experiments.figures.style import legend_below, panels, themed
from lrp4rag.report.figure_text import SYMBOLS, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"accuracy": "accuracy", "auroc": "AUROC", "f1": "F1", "balanced_accuracy": "balanced accuracy"}
PUBLISHED_LENGTH = 220  # the paper's best for the SVM


@dataclass(frozen=True, slots=True)
class LengthCurve:
    """Cross-validated metrics of one setting, the same but for the resampling length."""

    lengths: tuple[int, ...]
    metrics: tuple[Metrics, ...]

    def values(self, metric: str) -> NDArray[np.float64]:
        """Value, lower and upper bound (3, lengths); NaN where undefined."""
        found = [point[metric] for point in self.metrics]
        rows = [[point.value, point.low, point.high] for point in found]
        return np.array(rows, dtype=np.float64).T


def table(found: Mapping[str, LengthCurve]) -> pd.DataFrame:
    """One line a name, length and metric."""
    import pandas as pd

    return pd.DataFrame(
        {
            "name": name,
            "length": length,
            "metric": metric,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
        }
        for name, curve in found.items()
        for length, metrics in zip(curve.lengths, curve.metrics, strict=True)
        for metric, interval in metrics.items()
    )


def draw(
    found: Mapping[str, LengthCurve],
    metrics: Sequence[str] = ("accuracy", "auroc"),
    *,
    title: str = "",
) -> Figure:
    """A panel a metric, a line a name with its 95 % band; the paper's length is marked.

    The best point of a curve was chosen by looking at it: it is no estimate of what that length is worth.
    """
    import seaborn as sns

    with themed():
        drawn, axes = panels(1, [NAMES.get(metric, metric) for metric in metrics], height=3.0, sharey=False)
        colours = sns.color_palette("colorblind", len(found))
        for ax, metric in zip(axes[0], metrics, strict=True):
            for (name, curve), colour in zip(found.items(), colours, strict=True):
                _line(ax, curve, metric, name, colour)
            ax.axvline(PUBLISHED_LENGTH, color="0.4", ls=":", lw=1, label="the paper's length")
            ax.set_xlabel(f"resampling length {SYMBOLS['length']}")
        legend_below(drawn, axes[0])
        if title:
            drawn.suptitle(label(title))
        return drawn


def _line(ax: Axes, curve: LengthCurve, metric: str, name: str, colour: tuple[float, ...]) -> None:
    import seaborn as sns

    value, low, high = curve.values(metric)
    lengths = np.array(curve.lengths)
    sns.lineplot(x=lengths, y=value, ax=ax, color=colour, label=name, marker="o", ms=4, lw=1.3, legend=False)
    ax.fill_between(lengths, low, high, color=colour, alpha=0.15, lw=0)
