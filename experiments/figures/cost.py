"""AUROC of responses against what it costs: plain forwards of the reader, or sources to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from experiments.figures.results import bounds
from experiments.figures.style import COLOURS, CONTROL, DETECTOR, blank, themed
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.figure_text import label

LEAST = 0.01  # plain forwards: what costs next to nothing is drawn here
GAP = 0.014  # of AUROC, between labels
WIDTH = 0.9  # of a label, in powers of ten

ByGenerator = Mapping[str, Mapping[str, Interval]]
"""AUROC by generator and detector."""


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


def draw_intervals(
    ax: Axes, places: Sequence[float], lines: Mapping[str, Sequence[Interval]], *, joined: bool = True
) -> None:
    """Values with their intervals, a line or a row of dots a name; those that are undefined are left out."""
    for (name, intervals), colour in zip(lines.items(), sns.color_palette(COLOURS, len(lines)), strict=True):
        value, low, high = bounds(intervals)
        known = ~np.isnan(value)
        around = np.nan_to_num([value - low, high - value])[:, known]
        ax.errorbar(
            np.array(places)[known],
            value[known],
            yerr=around,
            label=label(name),
            color=colour,
            marker="o",
            capsize=2,
            lw=1.4,
            ls="-" if joined else "none",
        )


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
        taken = sorted(heights[other] for other in heights if abs(log10(x / places[other][0])) < WIDTH)
        for other in taken:
            if abs(height - other) < GAP:
                height = other + GAP
        heights[name] = height
    return heights
