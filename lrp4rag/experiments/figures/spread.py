"""Figure 2 of LRP4RAG (arXiv 2408.15533): box plots of mean relevance, hallucinated against normal rows.

R_prompt and R_response are means of the same matrix R*, so their means in logits are one and the same
number; only scaled within the row, as the paper's code does, do their boxes differ.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.figures.style import (
    CLASSES,
    UNIT,
    class_names,
    legend_below,
    panels,
    themed,
)
from lrp4rag.experiments.paper.significance import auroc_of_low
from lrp4rag.experiments.paper.sweep import row_means
from lrp4rag.report.figure_text import SYMBOLS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALES = {"logits": f"mean {UNIT}", "within": "mean after scaling\neach row to (0, 1)"}


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Means (rows) of one generator's rows by vector, in logits and scaled within the row."""

    labels: NDArray[np.bool_]
    logits: dict[str, NDArray[np.float64]]
    within: dict[str, NDArray[np.float64]]

    def frame(self, scale: str) -> pd.DataFrame:
        """One line a row and vector: vector, class, mean."""
        import pandas as pd

        names = class_names(self.labels)
        means: dict[str, NDArray[np.float64]] = getattr(self, scale)
        return pd.concat(
            [
                pd.DataFrame({"vector": vector, "class": names, "mean": values})
                for vector, values in means.items()
            ],
            ignore_index=True,
        )


def spread(vectors: Mapping[str, Sequence[NDArray[np.floating]]], labels: NDArray[np.bool_]) -> Spread:
    """Means of rows of relevance of any length, by the name of the vector ("prompt", "response")."""
    return Spread(
        labels=labels,
        logits={name: np.array([row.mean() for row in rows]) for name, rows in vectors.items()},
        within={name: row_means(rows, "within") for name, rows in vectors.items()},
    )


def table(spreads: Mapping[str, Spread]) -> pd.DataFrame:
    """Quartiles by generator, scale, vector and class, and the AUROC of "hallucinated where low"."""
    import pandas as pd

    parts = []
    for generator, found in spreads.items():
        for scale in SCALES:
            summary = found.frame(scale).groupby(["vector", "class"])["mean"].describe().reset_index()
            means: dict[str, NDArray[np.float64]] = getattr(found, scale)
            summary["auroc"] = [float(auroc_of_low(means[name], found.labels)) for name in summary["vector"]]
            summary.insert(0, "generator", generator)
            summary.insert(1, "scale", scale)
            parts.append(summary.rename(columns={"25%": "q1", "50%": "median", "75%": "q3"}))
    return pd.concat(parts, ignore_index=True)


def draw(spreads: Mapping[str, Spread]) -> Figure:
    """A column a generator; means in logits above, scaled within the row below."""
    with themed():
        drawn, axes = panels(len(SCALES), list(spreads))
        for row, (scale, label) in zip(axes, SCALES.items(), strict=True):
            for ax, found in zip(row, spreads.values(), strict=True):
                _boxes(ax, found.frame(scale))
            row[0].set_ylabel(label)
        legend_below(drawn, axes.flat)
        return drawn


def _boxes(ax: Axes, frame: pd.DataFrame) -> None:
    import seaborn as sns

    with warnings.catch_warnings():
        # seaborn 0.13 passes matplotlib 3.11 an argument that it no longer likes.
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
