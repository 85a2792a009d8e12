"""Tables 1 and 5 of LRP4RAG (arXiv 2408.15533): the threshold on mean relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.cache import Cell, Task
from experiments.figures.style import PUBLISHED, legend_below, not_stored, panels, themed
from experiments.figures.text import SYMBOLS
from experiments.paper.context import Context, Exhibit, Note
from experiments.paper.subset import Subset
from experiments.paper.sweep import SCALINGS, Scaling, ThresholdMethod, threshold_method
from experiments.published import BEST_THRESHOLDS
from lrp4rag.classifiers.card import Interval
from lrp4rag.report.numbers import METRICS, number, with_interval

STRIDE = 2
"""Every second threshold of the sweep goes into the CSV file."""
COLOURS = {"f1": "#009e73", "accuracy": "#cc79a7", "precision": "#56b4e9", "recall": "#e69f00"}
"""Of the metrics that are swept."""

SHOWN = ("f1", "precision", "recall", "accuracy", "auroc")
"""Metrics that the page has; the CSV file has all."""

NOTHING = Interval(value=None, low=None, high=None)

PANELS = (("prompt", "within"), ("response", "within"), ("response", "across"))
"""Vectors and scalings that are drawn: across rows both vectors have the same mean."""

Methods = Mapping[str, Sequence[ThresholdMethod]]
"""By generator: one for each vector and scaling."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    methods: dict[str, tuple[ThresholdMethod, ...]]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Thresholds:
    resamples = context.settings.resamples
    cells = {
        (name, vector, scaling): _cell(subset, vector, scaling, resamples)
        for name, subset in context.subsets.items()
        for scaling in SCALINGS
        for vector in vectors_of(subset)
    }
    found: dict[str, tuple[ThresholdMethod, ...]] = dict.fromkeys(context.subsets, ())
    for (name, _, _), method in zip(cells, context.cache.all([*cells.values()], "thresholds"), strict=True):
        found[name] += (method,)
    return Thresholds(found, context.lacking("prompt", "R_prompt"))


def vectors_of(subset: Subset) -> tuple[str, ...]:
    """R_prompt where the generator's rows have it, and R_response."""
    return ("prompt", "response") if subset.has("prompt") else ("response",)


def show(result: Thresholds) -> Exhibit:
    best = best_table(result.methods)
    return Exhibit(
        {"thresholds": draw(result.methods)},
        {"tables-1-and-5": best, "threshold-sweep": sweep_table(result.methods).iloc[::STRIDE]},
        {"tables-1-and-5": words_of(best)},
    )


def words_of(best: pd.DataFrame) -> pd.DataFrame:
    """What the page shows of `best_table`, or of the CSV file that was written of it."""
    words = best[["generator", "vector", "scaling", "chosen_on"]].assign(
        threshold=best["threshold"].map(number)
    )
    for name in SHOWN:
        bounds = zip(best[name], best[f"{name}_low"], best[f"{name}_high"], strict=True)
        words[METRICS[name]] = [
            with_interval(Interval(value=value, low=low, high=high)) for value, low, high in bounds
        ]
    words["F1 of flagging everything"] = best["flag_everything_f1"].map(number)
    words["paper: threshold, F1"] = [
        f"{number(at, 2)}, {number(f1)}".removeprefix(", ")
        for at, f1 in zip(best["paper_threshold"], best["paper_f1"], strict=True)
    ]
    return words.rename(columns={"chosen_on": "chosen on"})


def sweep_table(found: Methods) -> pd.DataFrame:
    """One line a generator, vector, scaling and threshold."""
    return pd.concat(
        [
            pd.DataFrame(
                _names(generator, method)
                | {name: getattr(method.sweep, name) for name in ("thresholds", *COLOURS)}
            )
            for generator, methods in found.items()
            for method in methods
        ],
        ignore_index=True,
    ).rename(columns={"thresholds": "threshold"})


def best_table(found: Methods) -> pd.DataFrame:
    """The best threshold as the paper picks it, beside the honest one and the paper's own figure.

    Two lines a generator, vector and scaling. `threshold` of the honest line is the mean over folds, and
    `over_everything` its F1 less that of flagging everything, paired.
    """
    lines = []
    for generator, methods in found.items():
        for method in methods:
            threshold, f1 = BEST_THRESHOLDS.get((method.vector, generator), (None, None))
            for chosen_on, chosen in (("reported rows", method.reported), ("training folds", method.honest)):
                line: dict[str, Any] = _names(generator, method) | {
                    "chosen_on": chosen_on,
                    "threshold": float(np.mean(chosen.thresholds)),
                }
                for name, interval in chosen.metrics.items():
                    line |= {name: interval.value, **_bounds(name, interval)}
                line["flag_everything_f1"] = method.flag_everything
                over = method.over_everything if chosen is method.honest else NOTHING
                line |= {"over_everything": over.value, **_bounds("over_everything", over)}
                lines.append(line | {"paper_threshold": threshold, "paper_f1": f1})
    return pd.DataFrame(lines)


def _bounds(name: str, interval: Interval) -> dict[str, float | None]:
    return {f"{name}_low": interval.low, f"{name}_high": interval.high}


def draw(found: Methods) -> Figure:
    """A column a generator, a row a vector and scaling: metrics against the threshold."""
    by_kind = {
        generator: {(each.vector, each.scaling): each for each in methods}
        for generator, methods in found.items()
    }
    shown = [kind for kind in PANELS if any(kind in methods for methods in by_kind.values())]
    with themed():
        drawn, axes = panels(len(shown), list(found), height=2.0, sharey=True)
        for column, (generator, methods) in zip(axes.T, by_kind.items(), strict=True):
            for ax, kind in zip(column, shown, strict=True):
                if kind in methods:
                    _sweep(ax, generator, methods[kind])
                else:
                    not_stored(ax)
            column[-1].set_xlabel("threshold on the scaled mean")
        for ax, (vector, scaling) in zip(axes[:, 0], shown, strict=True):
            ax.set_ylabel(f"{SYMBOLS[vector]},\nscaled {scaling} rows")
        legend_below(drawn, axes.flat)
        return drawn


def _sweep(ax: Axes, generator: str, method: ThresholdMethod) -> None:
    curve = method.sweep
    for name, colour in COLOURS.items():
        width = 1.8 if name == "f1" else 1
        ax.plot(curve.thresholds, getattr(curve, name), color=colour, label=METRICS[name], lw=width)
    ax.axhline(method.flag_everything, color="0.4", ls=":", lw=1, label="F1 of flagging everything")
    f1 = method.honest.metrics["f1"].value
    ax.scatter(
        [np.mean(method.honest.thresholds)],
        [np.nan if f1 is None else f1],
        color=COLOURS["f1"],
        edgecolors="black",
        s=28,
        zorder=3,
        label="F1, threshold from the training folds",
    )
    paper = BEST_THRESHOLDS.get((method.vector, generator))
    if paper and method.scaling == "within":
        style: dict[str, Any] = {"facecolors": "none", "edgecolors": PUBLISHED, "zorder": 3}
        ax.scatter(*paper, s=34, label="the paper's best F1", **style)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="", ylabel="")


def _names(generator: str, method: ThresholdMethod) -> dict[str, str]:
    return {"generator": generator, "vector": method.vector, "scaling": method.scaling}


def _cell(subset: Subset, vector: str, scaling: Scaling, resamples: int) -> Cell:
    key = {"what": "threshold", "vector": vector, "scaling": scaling, "rows": subset.digest}
    prepare = partial(_prepare, subset, vector, scaling, resamples)
    return Cell(key | {"resamples": resamples}, ThresholdMethod, prepare)


def _prepare(subset: Subset, vector: str, scaling: Scaling, resamples: int) -> Task:
    rows = subset.vectors(vector), subset.labels, subset.groups
    return partial(threshold_method, vector, *rows, scaling=scaling, resamples=resamples)
