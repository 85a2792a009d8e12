"""Results of cross-validation, drawn: each value with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from typing import Any, Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
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
from experiments.figures.text import LONG_NAME, SYMBOLS, label
from experiments.metrics import Reliability
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.numbers import METRICS, bracketed
from lrp4rag.training.localisation import ALL

Values = NDArray[np.float64]
Kind = Literal["detector", "control"]
KINDS: dict[Kind, str] = {"detector": DETECTOR, "control": CONTROL}
PUBLISHED_LENGTH = 220  # the paper's best for the SVM
LEAST = 0.01  # plain forwards: what costs next to nothing is drawn here
LABEL_GAP = 0.014  # of AUROC, between labels
LABEL_WIDTH = 0.9  # of a label, in powers of ten
_DIAMOND: dict[str, Any] = {"marker": "D", "ls": "", "mfc": "none", "mec": PUBLISHED}

ByGenerator = Mapping[str, Mapping[str, Interval]]
"""AUROC by generator and detector."""


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


def draw_curve(curve: Mapping[int, Mapping[str, Metrics]]) -> Figure:
    """AUROC by the number of sources that models learned from, a line a generator."""
    sizes = sorted(curve)
    names = next(iter(curve.values()))
    with themed():
        drawn = blank((6.4, 4.0))
        ax = drawn.subplots()
        draw_intervals(ax, sizes, {name: [curve[size][name]["auroc"] for size in sizes] for name in names})
        ax.set(xscale="log", xlabel="sources learned from", ylabel="AUROC of responses")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.legend(frameon=False)
        return drawn


def draw_cost(aurocs: ByGenerator, forwards: Mapping[str, float]) -> Figure:
    """Dots of each generator over the plain forwards of a few detectors, which are named above."""
    ways = sorted(forwards, key=forwards.__getitem__)
    with themed():
        drawn = blank((6.4, 4.0))
        ax = drawn.subplots()
        places = [forwards[way] for way in ways]
        dots = {name: [values[way] for way in ways] for name, values in aurocs.items()}
        draw_intervals(ax, places, dots, joined=False)
        places = sorted(set(places))
        for k, place in enumerate(places):
            words = ", ".join(way for way in ways if forwards[way] == place)
            height = 1.02 + 0.06 * (k % 3)  # so that what costs nearly the same does not overlap
            side = "right" if k and k == len(places) - 1 else "center"
            ax.annotate(words, (place, height), xycoords=("data", "axes fraction"), ha=side, color="0.4")
        ax.set(xlabel="plain forwards of the reader", ylabel="AUROC of responses", xlim=(0, None))
        ax.legend(frameon=False, loc="lower right")
        return drawn


def draw_systems(aurocs: ByGenerator, forwards: Mapping[str, float], ours: tuple[str, ...]) -> Figure:
    """A panel a generator, a named dot a system at its plain forwards; `ours` stand out."""
    with themed():
        drawn = blank((10.0, 0.6 + 4.6 * len(aurocs)))
        axes = drawn.subplots(len(aurocs), 1, squeeze=False, sharex=True)[:, 0]
        for ax, (generator, values) in zip(axes, aurocs.items(), strict=True):
            _systems(ax, values, forwards, ours)
            ax.set_title(label(generator))
            ax.set(ylabel="AUROC of responses")
        axes[-1].set(xlabel=f"plain forwards of the reader (those below {LEAST:g} are drawn there)")
        return drawn


def draw_epochs(
    epochs: Sequence[int], lines: Mapping[str, Sequence[Interval]], beside: str, value: Interval
) -> Figure:
    """A line a name, each value with its interval; `beside` names a value of another training."""
    with themed():
        drawn = blank((6.4, 4.0))
        ax = drawn.subplots()
        draw_intervals(ax, epochs, lines)
        if value.value is not None:
            ax.axhline(value.value, color=CONTROL, lw=1.2, ls="--", label=label(beside))
        ax.set(xlabel="epochs", ylabel="F1 of spans", ylim=(0, None))
        ax.set_xticks(epochs)
        ax.legend(frameon=False, loc="lower right")
        return drawn


def draw_breakdown(strata: Sequence[Any], prevalences: Sequence[Any]) -> Figure:
    """A panel for each way to divide, with all generators' rows, and one for prevalence (see `breakdown`)."""
    kinds = list(dict.fromkeys(one.by for one in strata))
    with themed():
        drawn = blank((11.0, 7.6))
        axes = drawn.subplots(2, 2).flat
        for ax, kind in zip(axes, kinds, strict=False):
            chosen = [one for one in strata if one.by == kind and one.generator == ALL]
            _dots(ax, [one.name for one in chosen], _by_system(chosen, "auroc"))
            ax.axhline(0.5, color="0.6", lw=0.8, ls=":")
            ax.set(ylabel="AUROC of responses", title=label(f"by {kind}"), ylim=(0.4, 1))
        last = axes[len(kinds)]
        _dots(last, [f"{one.prevalence:.0%}" for one in prevalences], _by_system(prevalences, "precision"))
        last.plot(
            range(len(prevalences)),
            [one.prevalence for one in prevalences],
            color="0.4",
            ls=":",
            label="flag everything",
        )
        last.set(ylabel="precision at the threshold", title="by share of hallucinated responses", ylim=(0, 1))
        legend_below(drawn, [*axes, last])
        return drawn


def draw_claims(found: Any) -> Figure:
    """How many claims there are of each length, and AUROC by length."""
    with themed():
        drawn = blank((9.0, 3.4))
        bars, dots = drawn.subplots(1, 2)
        below = np.zeros(max(map(len, found.lengths.values())))
        for (name, counts), colour in zip(found.lengths.items(), ("0.7", DETECTOR), strict=True):
            bars.bar(range(len(counts)), counts, bottom=below, color=colour, width=0.9, label=label(name))
            below = below + np.array(counts)
        names = [f"{10 * k + 1}-{10 * k + 10}" for k in range(len(below))]
        bars.set_xticks(range(len(below)), names, rotation=30)
        bars.set(xlabel="tokens", ylabel="claims", title="lengths of claims")
        bars.legend()
        places = [f"{one.shortest} to {one.longest}" for one in found.groups]
        _dots(dots, places, _by_system(found.groups, "auroc"))
        dots.axhline(0.5, color="0.6", lw=0.8, ls=":")
        dots.set(xlabel="tokens", ylabel="AUROC of claims", title="by length of the claim", ylim=(0.3, 1))
        dots.legend()
        return drawn


def _by_system(groups: Sequence[Any], metric: str) -> dict[str, list[Interval]]:
    return {name: [one.systems[name][metric] for one in groups] for name in groups[0].systems}


def draw_intervals(
    ax: Axes,
    places: Sequence[float],
    lines: Mapping[str, Sequence[Interval]],
    *,
    joined: bool = True,
    apart: float = 0.0,
    colours: Sequence[Any] | None = None,
) -> None:
    """Values with their intervals, a line or a row of dots a name, shifted by `apart`; those that are
    undefined are left out."""
    colours = colours or sns.color_palette(COLOURS, len(lines))
    for k, (name, intervals) in enumerate(lines.items()):
        value, low, high = bounds(intervals)
        finite = ~np.isnan(value)
        ax.errorbar(
            (np.array(places, dtype=float) + apart * (k - (len(lines) - 1) / 2))[finite],
            value[finite],
            yerr=np.nan_to_num([value - low, high - value])[:, finite],
            label=label(name),
            color=colours[k],
            marker="o",
            capsize=2,
            lw=1.4,
            ls="-" if joined else "none",
        )


def _dots(ax: Axes, places: Sequence[str], lines: Mapping[str, Sequence[Interval]]) -> None:
    colours = [DETECTOR, *sns.color_palette(COLOURS, len(lines))]
    draw_intervals(ax, range(len(places)), lines, joined=False, apart=0.16, colours=colours)
    ax.set_xticks(range(len(places)), [label(place).replace(" (", "\n(") for place in places])


def _systems(
    ax: Axes, values: Mapping[str, Interval], forwards: Mapping[str, float], ours: tuple[str, ...]
) -> None:
    known = {
        name: (max(forwards[name], LEAST), one.value, one.low, one.high)
        for name, one in values.items()
        if name in forwards and one.value is not None and one.low is not None and one.high is not None
    }
    ax.set(xscale="log")
    ax.axhline(0.5, color="0.6", lw=0.8, ls=":")
    for name, (x, y, low, high) in known.items():
        colour = DETECTOR if name in ours else CONTROL
        ax.vlines(x, low, high, color=colour, lw=1.2, alpha=0.35)
        ax.plot(x, y, "o", color=colour, ms=4.5, zorder=4)
    halo = withStroke(linewidth=2, foreground="white")
    for name, height in _apart({name: (x, y) for name, (x, y, _, _) in known.items()}).items():
        ax.annotate(
            label(name),
            (known[name][0] * 1.1, height),
            fontsize=7.5,
            color=DETECTOR if name in ours else "0.2",
            va="center",
            weight="bold" if name in ours else "normal",
            path_effects=[halo],
        )
    ax.set_xlim(LEAST / 2, max((x for x, _, _, _ in known.values()), default=1.0) * 8)


def _apart(places: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Heights of labels: those that would be written over one that is lower are moved up."""
    heights: dict[str, float] = {}
    for name in sorted(places, key=lambda name: places[name][1]):
        x, height = places[name]
        taken = sorted(heights[other] for other in heights if abs(log10(x / places[other][0])) < LABEL_WIDTH)
        for other in taken:
            if abs(height - other) < LABEL_GAP:
                height = other + LABEL_GAP
        heights[name] = height
    return heights


def bounds(intervals: Sequence[Interval]) -> Values:
    """Value, lower and upper bound (3, n); NaN where they are undefined."""
    return np.array([[one.value, one.low, one.high] for one in intervals], dtype=np.float64).T


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
