"""The systems of a comparison: AUROC against what a response costs, a panel for each generator."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import TYPE_CHECKING

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.figures.style import CONTROL, DETECTOR, blank, themed
from lrp4rag.report.figure_text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 0.01  # plain forwards: what costs next to nothing is drawn here
GAP = 0.014  # of AUROC, between labels
WIDTH = 0.9  # of a label, in powers of ten


def draw_cost(
    aurocs: Mapping[str, Mapping[str, Interval]], forwards: Mapping[str, float], ours: tuple[str, ...]
) -> Figure:
    """`aurocs` by generator and system, `forwards` by system: plain forwards of the reader."""
    with themed():
        drawn = blank((10.0, 0.6 + 4.6 * len(aurocs)))
        axes = drawn.subplots(len(aurocs), 1, squeeze=False, sharex=True)[:, 0]
        for ax, (generator, values) in zip(axes, aurocs.items(), strict=True):
            _panel(ax, values, forwards, ours)
            ax.set_title(label(generator))
            ax.set(ylabel="AUROC of responses")
        axes[-1].set(xlabel=f"plain forwards of the reader (those below {LEAST:g} are drawn there)")
        return drawn


def _panel(
    ax: Axes, values: Mapping[str, Interval], forwards: Mapping[str, float], ours: tuple[str, ...]
) -> None:
    from matplotlib.patheffects import withStroke

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
