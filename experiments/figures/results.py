"""Metrics of cross-validation, drawn: each value with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from experiments.figures.style import (
    COLOURS,
    CONTROL,
    DETECTOR,
    PUBLISHED,
    blank,
    legend_below,
    panels,
    themed,
)
from experiments.figures.text import LONG_NAME, SYMBOLS
from experiments.metrics import Reliability
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.figure_text import label
from lrp4rag.report.numbers import METRICS, bracketed

Values = NDArray[np.float64]
Kind = Literal["detector", "control"]
KINDS: dict[Kind, str] = {"detector": DETECTOR, "control": CONTROL}
PUBLISHED_LENGTH = 220  # the paper's best for the SVM


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a forest plot; `published` has what the paper reports of it, by metric."""

    name: str
    kind: Kind
    metrics: Metrics
    published: Mapping[str, float] = field(default_factory=dict)

    def value(self, metric: str) -> float:
        interval = self.metrics.get(metric)
        return -1.0 if interval is None or interval.value is None else interval.value


@dataclass(frozen=True, slots=True)
class Difference:
    """A gain (or a loss) of one line on one generator."""

    generator: str
    name: str
    interval: Interval


def draw_forest(
    entries: Sequence[Entry], metrics: Sequence[str] = ("auroc", "accuracy", "f1"), *, title: str = ""
) -> Figure:
    """A panel a metric, entries sorted by the first of them, the best on top; a diamond is the paper's."""
    ranked = sorted(entries, key=lambda entry: entry.value(metrics[0]))
    with themed():
        names = [METRICS.get(metric, metric) for metric in metrics]
        drawn, axes = panels(1, names, height=0.27 * len(ranked) + 0.7, sharey=True)
        for ax, metric in zip(axes[0], metrics, strict=True):
            for place, entry in enumerate(ranked):
                _dot(ax, place, entry.metrics.get(metric), KINDS[entry.kind])
                if metric in entry.published:
                    ax.plot(entry.published[metric], place, **_DIAMOND, ms=5)
            ax.set(ylim=(-0.7, len(ranked) - 0.3))
            ax.margins(x=0.06)
        _name_rows(axes[0], [entry.name for entry in ranked])
        _legend(drawn, ranked)
        if title:
            drawn.suptitle(title)
        return drawn


def draw_differences(found: Sequence[Difference], xlabel: str) -> Figure:
    """A panel a generator, a line a name; those whose interval contains zero are grey."""
    generators = list(dict.fromkeys(each.generator for each in found))
    names = list(dict.fromkeys(each.name for each in found))
    with themed():
        drawn, axes = panels(1, generators, height=0.28 * len(names) + 0.7, sharex=True, sharey=True)
        for ax, generator in zip(axes[0], generators, strict=True):
            ax.axvline(0, color="0.4", ls=":", lw=1)
            for each in found:
                if each.generator == generator:
                    _dot(ax, names.index(each.name), each.interval, _effect_colour(each.interval))
            ax.set(xlabel=xlabel, ylim=(len(names) - 0.4, -0.6))
        _name_rows(axes[0], names)
        return drawn


def draw_lengths(
    found: Mapping[str, Mapping[int, Metrics]],
    metrics: Sequence[str] = ("accuracy", "auroc"),
    *,
    title: str = "",
) -> Figure:
    """Metrics by name and resampling length: a panel a metric, a line a name with its 95 % band.

    The best point of a curve was chosen by looking at it: it is no estimate of what that length is worth.
    """
    with themed():
        drawn, axes = panels(1, [METRICS.get(metric, metric) for metric in metrics], height=3.0, sharey=False)
        for ax, metric in zip(axes[0], metrics, strict=True):
            for (name, curve), colour in zip(found.items(), _colours(found), strict=True):
                value, low, high = bounds([point[metric] for point in curve.values()])
                lengths = list(curve)
                ax.plot(lengths, value, color=colour, label=name, marker="o", mec="w", mew=0.75, ms=4, lw=1.3)
                ax.fill_between(lengths, low, high, color=colour, alpha=0.15, lw=0)
            ax.axvline(PUBLISHED_LENGTH, color="0.4", ls=":", lw=1, label="the paper's length")
            ax.set_xlabel(f"resampling length {SYMBOLS['length']}")
        legend_below(drawn, axes[0])
        if title:
            drawn.suptitle(label(title))
        return drawn


def draw_transfer(found: Mapping[tuple[str, str], Interval], *, title: str = "") -> Figure:
    """A heatmap of AUROC by (trained on, tested on): training sets down and test sets across."""
    trains, tests = (list(dict.fromkeys(pair[k] for pair in found)) for k in (0, 1))
    cells = [[found.get((train, test)) for test in tests] for train in trains]
    values = np.array([[_number(cell) for cell in row] for row in cells])
    words = np.array([[_cell_words(cell) for cell in row] for row in cells])
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
            cbar_kws={"label": METRICS["auroc"]},
        )
        ax.set(xlabel="tested on", ylabel="trained on", title=title)
        ax.tick_params(axis="x", rotation=20)
        ax.tick_params(axis="y", rotation=0)
        return drawn


def draw_reliability(found: Mapping[str, Reliability], *, title: str = "") -> Figure:
    """How often rows of a predicted probability are hallucinated: a line a name, its rows below."""
    with themed():
        drawn = blank((6.4, 5.2))
        above, below = drawn.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color="0.4", ls=":", lw=1, label="perfectly calibrated")
        for (name, line), colour in zip(found.items(), _colours(found), strict=True):
            described = f"{name} (ECE {calibration_error(line):.3f})"
            style = {"color": colour, "marker": "o", "markersize": 5, "linewidth": 1.4}
            used = line.count > 0
            above.plot(line.probability[used], line.frequency[used], label=described, **style)
            below.plot(line.probability[used], line.count[used], **style)
        above.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of hallucinated rows", title=label(title))
        below.set(xlabel="predicted probability of a hallucination", ylabel="rows")
        below.set_ylim(bottom=0)
        above.legend(frameon=False, loc="upper left")
        return drawn


def calibration_error(line: Reliability) -> float:
    """Mean distance of probability and frequency over the bins, weighted by their rows."""
    used = line.count > 0
    gaps = np.abs(line.probability - line.frequency)[used]
    return float(np.average(gaps, weights=line.count[used]))


def bounds(intervals: Sequence[Interval]) -> Values:
    """Value, lower and upper bound (3, n); NaN where they are undefined."""
    return np.array([[one.value, one.low, one.high] for one in intervals], dtype=np.float64).T


_DIAMOND: dict[str, Any] = {"marker": "D", "ls": "", "mfc": "none", "mec": PUBLISHED}


def _dot(ax: Axes, place: int, interval: Interval | None, colour: str) -> None:
    """An estimate with its interval, at a height; nothing where it is undefined."""
    if interval is None or interval.value is None:
        return
    low = interval.value if interval.low is None else interval.low
    high = interval.value if interval.high is None else interval.high
    ax.plot([low, high], [place, place], color=colour, lw=1.4, solid_capstyle="butt")
    ax.plot(interval.value, place, "o", color=colour, ms=5)


def _effect_colour(interval: Interval) -> str:
    unknown = interval.low is None or interval.high is None
    return CONTROL if unknown or interval.low <= 0 <= interval.high else DETECTOR  # type: ignore[operator]


def _name_rows(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the lines of panels that share their vertical axis."""
    for ax in axes:
        ax.grid(visible=False, axis="y")
    axes[0].set_yticks(range(len(names)), [label(name, LONG_NAME) for name in names])


def _legend(drawn: Figure, entries: Sequence[Entry]) -> None:
    kinds = [kind for kind in KINDS if any(entry.kind == kind for entry in entries)]
    handles: list[Any] = [Line2D([], [], color=KINDS[kind], marker="o", ms=5, lw=1.4) for kind in kinds]
    labels: list[str] = [*kinds]
    if any(entry.published for entry in entries):
        handles.append(Line2D([], [], **_DIAMOND))
        labels.append("the paper's figure")
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def _colours(found: Mapping[str, object]) -> Any:
    return sns.color_palette(COLOURS, len(found))


def _number(cell: Interval | None) -> float:
    return float("nan") if cell is None or cell.value is None else cell.value


def _cell_words(cell: Interval | None) -> str:
    if cell is None or cell.value is None:
        return ""
    if cell.low is None or cell.high is None:
        return f"{cell.value:.2f}"
    return f"{cell.value:.2f}\n{bracketed(cell.low, cell.high)}"
