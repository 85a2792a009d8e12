"""Tables 1 and 5 of LRP4RAG (arXiv 2408.15533): flag a response of low mean relevance.

The paper resamples a row's relevance to 100 values, trims extremes, scales to (0, 1), takes the mean, and
sweeps a threshold over it. What is scaled decides what is measured, so both readings are here:

* `within`: each row by its own minimum and maximum, after five of 110 positions are cut at either end, as
  the paper's code does. The mean then says how peaked a row is and nothing of how much relevance it has.
* `across`: the rows' means in logits, clipped at their 1 % and 99 % quantiles. R_prompt and R_response are
  means of the same matrix, so here they differ by resampling alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.figures.style import PUBLISHED, legend_below, not_stored, panels, themed
from experiments.figures.text import SYMBOLS
from experiments.metrics import compare
from experiments.paper.baselines import NOTHING
from experiments.paper.context import Context, Exhibit, Note
from experiments.paper.data import Floats, Groups, Labels, Subset
from experiments.published import BEST_THRESHOLDS
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.lrp.resampling import resample
from lrp4rag.report.numbers import METRICS, number, with_interval
from lrp4rag.training.metrics import RESAMPLES, token_intervals
from lrp4rag.training.validation import Outcome

Scaling = Literal["within", "across"]

SCALINGS: tuple[Scaling, ...] = ("within", "across")
THRESHOLDS: Floats = np.arange(101) / 100
LENGTH, TRIMMED = 100, 5
CLIPPED = 0.01
FOLDS, SEED = 5, 0
STRIDE = 2
"""Every second threshold of the sweep goes into the CSV file."""
COLOURS = {"f1": "#009e73", "accuracy": "#cc79a7", "precision": "#56b4e9", "recall": "#e69f00"}
"""Of the metrics that are swept."""

SHOWN = ("f1", "precision", "recall", "accuracy", "auroc")
"""Metrics that the page has; the CSV file has all."""

PANELS = (("prompt", "within"), ("response", "within"), ("response", "across"))
"""Vectors and scalings that are drawn: across rows both vectors have the same mean."""

Methods = Mapping[str, Sequence["ThresholdMethod"]]
"""By generator: one for each vector and scaling."""


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Metrics (thresholds) of flagging every row whose scaled mean is below the threshold.

    Precision is NaN where nothing is flagged.
    """

    thresholds: Floats
    accuracy: Floats
    precision: Floats
    recall: Floats
    f1: Floats

    def best(self) -> float:
        """The lowest of the thresholds that maximise F1."""
        return float(self.thresholds[np.nanargmax(self.f1)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """Thresholds (one a fold, or one) and what flagging by them is worth, with bootstrap intervals."""

    thresholds: tuple[float, ...]
    metrics: Metrics


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdMethod:
    """One vector and scaling on the rows of one generator.

    `reported` chose its threshold on the very rows, as the paper did; `honest` on the training part of each
    grouped fold, scale included. `prevalence` is the share of hallucinated rows, and `over_everything` the F1
    of `honest` less that of flagging every row, on the same bootstrap draws.
    """

    vector: str
    scaling: Scaling
    sweep: Sweep
    reported: Chosen
    honest: Chosen
    prevalence: float
    over_everything: Interval

    @property
    def flag_everything(self) -> float:
        """The F1 of flagging every row: what a best F1 must beat."""
        return 2 * self.prevalence / (1 + self.prevalence)


def threshold_method(
    vector: str,
    vectors: Sequence[NDArray[np.floating]],
    labels: Labels,
    groups: Groups,
    scaling: Scaling = "within",
    resamples: int = RESAMPLES,
) -> ThresholdMethod:
    """Sweep the threshold over rows of relevance of any length; `vector` is only their name."""
    means = row_means(vectors, scaling)
    scaled = _scaled(means, means, scaling)
    curve = sweep(scaled, labels)
    best = curve.best()
    thresholds, flagged = _chosen_in_folds(means, labels, groups, scaling)

    def metrics(flags: Labels) -> Metrics:
        return token_intervals(labels, -means, flags, groups, resamples)

    everything = _outcome(np.ones_like(flagged))
    gained = compare(_outcome(flagged), everything, labels, groups, resamples=resamples)

    return ThresholdMethod(
        vector=vector,
        scaling=scaling,
        sweep=curve,
        reported=Chosen((best,), metrics(scaled < best)),
        honest=Chosen(thresholds, metrics(flagged)),
        prevalence=float(labels.mean()),
        over_everything=gained["f1"],
    )


def row_means(vectors: Sequence[NDArray[np.floating]], scaling: Scaling) -> Floats:
    """The mean of each resampled row (rows): in logits, or with `within` scaled to (0, 1).

    A row without any variation has no shape; it gets 1/2.
    """
    if scaling == "across":
        return np.array([resample(vector, LENGTH).mean() for vector in vectors])
    rows = np.stack([resample(vector, LENGTH + 2 * TRIMMED)[TRIMMED:-TRIMMED] for vector in vectors])
    low, high = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    spread = high - low
    scaled = np.where(spread > 0, (rows - low) / np.where(spread > 0, spread, 1), 0.5)
    return np.asarray(scaled.mean(1))


def sweep(scaled: Floats, labels: Labels, thresholds: Floats = THRESHOLDS) -> Sweep:
    """Metrics of every threshold over scaled means (rows), of which some are hallucinated."""
    flagged = scaled < thresholds[:, None]
    hits, raised, positive = (flagged & labels).sum(1), flagged.sum(1), labels.sum()
    return Sweep(
        thresholds=thresholds,
        accuracy=(flagged == labels).mean(1),
        precision=hits / np.where(raised, raised, np.nan),
        recall=hits / positive,
        f1=2 * hits / (raised + positive),
    )


def _scaled(means: Floats, fitted_on: Floats, scaling: Scaling) -> Floats:
    """Means between 0 and 1; `across` has its limits from `fitted_on`, so that folds can be kept apart."""
    if scaling == "within":
        return means
    low, high = np.quantile(fitted_on, [CLIPPED, 1 - CLIPPED])
    return np.asarray(np.clip((means - low) / ((high - low) or 1.0), 0, 1))


def _chosen_in_folds(
    means: Floats, labels: Labels, groups: Groups, scaling: Scaling
) -> tuple[tuple[float, ...], Labels]:
    thresholds, flagged = [], np.zeros(len(labels), dtype=bool)
    for train, test in grouped_folds(labels, groups, FOLDS, SEED):
        best = sweep(_scaled(means[train], means[train], scaling), labels[train]).best()
        flagged[test] = _scaled(means[test], means[train], scaling) < best
        thresholds.append(best)
    return tuple(thresholds), flagged


def _outcome(flagged: Labels) -> Outcome:
    return Outcome(flagged[None].astype(np.float64), flagged[None])


# The section.


@dataclass(frozen=True, slots=True)
class Thresholds:
    methods: dict[str, tuple[ThresholdMethod, ...]]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Thresholds:
    places = [
        (subset, vector, scaling)
        for subset in context.subsets.values()
        for scaling in SCALINGS
        for vector in vectors_of(subset)
    ]
    calls = (
        (vector, subset.vectors(vector), *subset.truth, scaling, context.settings.resamples)
        for subset, vector, scaling in places
    )
    methods: dict[str, tuple[ThresholdMethod, ...]] = dict.fromkeys(context.subsets, ())
    found = context.map(threshold_method, calls, "thresholds")
    for (subset, _, _), method in zip(places, found, strict=True):
        methods[subset.generator] += (method,)
    return Thresholds(methods, context.lacking("prompt", "R_prompt"))


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
        ax.scatter(paper[0], paper[1], s=34, label="the paper's best F1", **style)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="", ylabel="")


def _names(generator: str, method: ThresholdMethod) -> dict[str, str]:
    return {"generator": generator, "vector": method.vector, "scaling": method.scaling}
