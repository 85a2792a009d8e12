"""Transfer between generators: trained on one, tested on another, on sources that training never saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.figures.style import blank, themed
from lrp4rag.report.figure_text import label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAMES = {"auroc": "AUROC", "f1": "F1"}

Transfer = Mapping[tuple[str, str], Interval]
"""One metric by (trained on, tested on); a training set may be named that is no generator ("all others")."""


def table(found: Transfer) -> pd.DataFrame:
    """One line a pair."""
    import pandas as pd

    return pd.DataFrame(
        {"train": train, "test": test, "value": cell.value, "low": cell.low, "high": cell.high}
        for (train, test), cell in found.items()
    )


def draw(found: Transfer, metric: str = "auroc", *, title: str = "") -> Figure:
    """A heatmap, training sets down and test sets across, each cell with its interval."""
    import pandas as pd
    import seaborn as sns

    trains, tests = (list(dict.fromkeys(pair[k] for pair in found)) for k in (0, 1))
    values = np.array([[_number(found.get((train, test))) for test in tests] for train in trains])
    words = np.array([[_words(found.get((train, test))) for test in tests] for train in trains])
    with themed(), sns.axes_style("white"):
        drawn = blank((1.5 * len(tests) + 3.2, 0.62 * len(trains) + 1.5))
        ax = drawn.subplots()
        sns.heatmap(
            pd.DataFrame(values, [label(name) for name in trains], [label(name) for name in tests]),
            ax=ax,
            annot=words,
            fmt="",
            cmap="crest",
            linewidths=1,
            cbar_kws={"label": NAMES.get(metric, metric)},
        )
        ax.set(xlabel="tested on", ylabel="trained on", title=title)
        ax.tick_params(axis="x", rotation=20)
        ax.tick_params(axis="y", rotation=0)
        return drawn


def _number(cell: Interval | None) -> float:
    return float("nan") if cell is None or cell.value is None else cell.value


def _words(cell: Interval | None) -> str:
    if cell is None or cell.value is None:
        return ""
    if cell.low is None or cell.high is None:
        return f"{cell.value:.2f}"
    return f"{cell.value:.2f}\n[{cell.low:.2f}, {cell.high:.2f}]"
