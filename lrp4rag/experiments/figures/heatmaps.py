"""Figure 4 of LRP4RAG (arXiv 2408.15533): mean relevance matrices R* of hallucinated and of normal rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.experiments.figures.style import DIVERGING, UNIT, blank, themed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Matrix = NDArray[np.float64]
# One huge bin (a prompt's first token) would leave all others grey.
SATURATED = 0.98
TITLES = ("hallucinated", "normal", "hallucinated minus normal")


@dataclass(frozen=True, slots=True, eq=False)
class MeanMatrices:
    """Means of resampled R* (response bins, prompt bins) in logits, over this many rows."""

    hallucinated: Matrix
    normal: Matrix
    rows: tuple[int, int]

    @property
    def difference(self) -> Matrix:
        """Hallucinated less normal."""
        return self.hallucinated - self.normal

    @property
    def shown(self) -> dict[str, Matrix]:
        return {
            "hallucinated": self.hallucinated,
            "normal": self.normal,
            "difference": self.difference,
        }


def mean_matrices(matrices: NDArray[np.floating], labels: NDArray[np.bool_]) -> MeanMatrices:
    """Means by class of (rows, response bins, prompt bins)."""
    return MeanMatrices(
        hallucinated=matrices[labels].mean(0, dtype=np.float64),
        normal=matrices[~labels].mean(0, dtype=np.float64),
        rows=(int(labels.sum()), int((~labels).sum())),
    )


def table(found: Mapping[str, MeanMatrices]) -> pd.DataFrame:
    """One line a generator and bin of R*."""
    import pandas as pd

    parts = []
    for generator, means in found.items():
        response, prompt = np.indices(means.normal.shape)
        bins = pd.DataFrame({"response_bin": response.ravel(), "prompt_bin": prompt.ravel()})
        part = bins.assign(**{name: matrix.ravel() for name, matrix in means.shown.items()})
        part.insert(0, "generator", generator)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def draw(found: Mapping[str, MeanMatrices]) -> Figure:
    """A row a generator; one symmetric scale for all panels shows the difference in proportion."""
    import seaborn as sns

    limit = _limit(np.concatenate([m.ravel() for means in found.values() for m in means.shown.values()]))
    with themed(), sns.axes_style("ticks"):
        drawn = blank((8.0, 2.1 * len(found) + 0.6))
        axes = drawn.subplots(len(found), 3, squeeze=False, sharex=True, sharey=True)
        for row, (generator, means) in zip(axes, found.items(), strict=True):
            for ax, matrix in zip(row, means.shown.values(), strict=True):
                _heatmap(ax, matrix, limit)
            row[0].set_ylabel(f"{generator}\nresponse (%)")
        for top, bottom, title in zip(axes[0], axes[-1], TITLES, strict=True):
            top.set_title(title)
            bottom.set_xlabel("prompt (%)")
        colourbar = drawn.colorbar(axes[0, 0].collections[0], ax=axes, aspect=40, extend="both")
        colourbar.set_label(f"mean {UNIT}")
        colourbar.outline.set_visible(False)
        return drawn


def _heatmap(ax: Any, matrix: Matrix, limit: float) -> None:
    import seaborn as sns

    # As an image inside the SVG: thousands of paths would make it megabytes.
    sns.heatmap(
        matrix,
        ax=ax,
        cmap=DIVERGING,
        vmin=-limit,
        vmax=limit,
        cbar=False,
        rasterized=True,
        xticklabels=False,
        yticklabels=False,
    )
    rows, columns = matrix.shape
    ax.set_xticks([0, columns / 2, columns], ["0", "50", "100"])
    ax.set_yticks([0, rows / 2, rows], ["0", "50", "100"])


def _limit(values: Matrix) -> float:
    return float(np.quantile(np.abs(values), SATURATED)) or float(np.abs(values).max()) or 1.0
