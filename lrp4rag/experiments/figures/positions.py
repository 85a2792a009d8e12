"""Figure 5 of LRP4RAG (arXiv 2408.15533): significance by position, and below it the effect it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.experiments.figures.curves import percent
from lrp4rag.experiments.figures.style import legend_below, panels, themed
from lrp4rag.experiments.paper.significance import ALPHA, PositionTest
from lrp4rag.report.figure_text import SYMBOLS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"prompt": "#cc79a7", "response": "#009e73", "total": "#56b4e9"}
FLOOR = 1e-12  # smaller p are drawn here


def table(found: Mapping[str, Mapping[str, PositionTest]]) -> pd.DataFrame:
    """One line a generator, vector and position. `found` is generator -> vector -> test."""
    import pandas as pd

    parts = []
    for generator, vectors in found.items():
        for vector, test in vectors.items():
            part = test.table()
            part.insert(0, "generator", generator)
            part.insert(1, "vector", vector)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def draw(found: Mapping[str, Mapping[str, PositionTest]]) -> Figure:
    """A column a generator: median p over draws, p on all rows corrected for positions, effect size."""
    with themed():
        drawn, axes = panels(3, list(found), height=2.0)
        for column, tests in zip(axes.T, found.values(), strict=True):
            for vector, test in tests.items():
                _p(column[0], test.median_p, vector)
                _p(column[1], test.adjusted, vector)
                _effect(column[2], test, vector)
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


def _p(ax: Axes, values: np.ndarray, vector: str) -> None:
    import seaborn as sns

    y = np.maximum(values, FLOOR)
    sns.lineplot(
        x=percent(len(y)), y=y, ax=ax, color=COLOURS[vector], label=SYMBOLS[vector], lw=1.2, legend=False
    )


def _effect(ax: Axes, test: PositionTest, vector: str) -> None:
    import seaborn as sns

    x = percent(len(test.auroc))
    sns.lineplot(x=x, y=test.auroc, ax=ax, color=COLOURS[vector], label=SYMBOLS[vector], lw=1.2, legend=False)
    ax.fill_between(x, test.low, test.high, color=COLOURS[vector], alpha=0.2, lw=0)
