"""Tables 1 and 5 of LRP4RAG (arXiv 2408.15533): what each threshold on mean relevance is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lrp4rag.experiments.figures.style import PUBLISHED, legend_below, panels, themed
from lrp4rag.experiments.paper.published import published_threshold
from lrp4rag.experiments.paper.sweep import ThresholdMethod
from lrp4rag.report.figure_text import SYMBOLS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = {"f1": "#009e73", "accuracy": "#cc79a7", "precision": "#56b4e9", "recall": "#e69f00"}

Methods = Mapping[str, Sequence[ThresholdMethod]]  # by generator


def sweep_table(found: Methods) -> pd.DataFrame:
    """One line a generator, vector, scaling and threshold."""
    import pandas as pd

    parts = []
    for generator, methods in found.items():
        for method in methods:
            columns = {"threshold": method.sweep.thresholds}
            columns |= {name: getattr(method.sweep, name) for name in METRICS}
            part = pd.DataFrame(columns)
            for place, (name, value) in enumerate(_names(generator, method).items()):
                part.insert(place, name, value)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def best_table(found: Methods) -> pd.DataFrame:
    """The best threshold as the paper picks it, beside the honest one and the paper's own figure.

    Two lines a generator, vector and scaling. `threshold` of the honest line is the mean over folds.
    """
    import pandas as pd

    lines = []
    for generator, methods in found.items():
        for method in methods:
            paper = published_threshold(method.vector, generator)
            for chosen_on, chosen in (("reported rows", method.reported), ("training folds", method.honest)):
                line: dict[str, Any] = _names(generator, method) | {
                    "chosen_on": chosen_on,
                    "threshold": float(np.mean(chosen.thresholds)),
                }
                for name, interval in chosen.metrics.items():
                    line |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
                line["flag_everything_f1"] = method.flag_everything
                line["paper_threshold"] = paper.threshold if paper else None
                line["paper_f1"] = paper.f1 if paper else None
                lines.append(line)
    return pd.DataFrame(lines)


def draw(found: Methods) -> Figure:
    """A column a generator, a row a vector and scaling: metrics against the threshold."""
    count = len(next(iter(found.values())))
    with themed():
        drawn, axes = panels(count, list(found), height=2.0, sharey=True)
        for column, (generator, methods) in zip(axes.T, found.items(), strict=True):
            for ax, method in zip(column, methods, strict=True):
                _sweep(ax, generator, method)
            column[-1].set_xlabel("threshold on the scaled mean")
        for ax, method in zip(axes[:, 0], next(iter(found.values())), strict=True):
            ax.set_ylabel(f"{SYMBOLS[method.vector]},\nscaled {method.scaling} rows")
        legend_below(drawn, axes.flat)
        return drawn


def _sweep(ax: Axes, generator: str, method: ThresholdMethod) -> None:
    import seaborn as sns

    curve = method.sweep
    for name, colour in METRICS.items():
        label = "F1" if name == "f1" else name
        sns.lineplot(
            x=curve.thresholds,
            y=getattr(curve, name),
            ax=ax,
            color=colour,
            label=label,
            legend=False,
            lw=1.8 if name == "f1" else 1,
        )
    ax.axhline(method.flag_everything, color="0.4", ls=":", lw=1, label="F1 of flagging everything")
    honest, f1 = method.honest, method.honest.metrics["f1"].value
    ax.scatter(
        [np.mean(honest.thresholds)],
        [np.nan if f1 is None else f1],
        color=METRICS["f1"],
        edgecolors="black",
        s=28,
        zorder=3,
        label="F1, threshold from the training folds",
    )
    paper = published_threshold(method.vector, generator)
    if paper and method.scaling == "within":
        ax.scatter(
            [paper.threshold],
            [paper.f1],
            facecolors="none",
            edgecolors=PUBLISHED,
            s=34,
            zorder=3,
            label="the paper's best F1",
        )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="", ylabel="")


def _names(generator: str, method: ThresholdMethod) -> dict[str, str]:
    return {"generator": generator, "vector": method.vector, "scaling": method.scaling}
