"""The systems of a comparison: AUROC against what a response costs, a panel for each generator."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.figures.style import CONTROL, DETECTOR, blank, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 0.01  # plain forwards: what costs next to nothing is drawn here
GAP = 0.012  # of the axis, between labels


def draw_cost(
    aurocs: Mapping[str, Mapping[str, Interval]], forwards: Mapping[str, float], ours: tuple[str, ...]
) -> Figure:
    """`aurocs` by generator and system, `forwards` by system: plain forwards of the reader."""
    with themed():
        drawn = blank((10.0, 0.6 + 4.6 * len(aurocs)))
        axes = drawn.subplots(len(aurocs), 1, squeeze=False, sharex=True)[:, 0]
        for ax, (generator, values) in zip(axes, aurocs.items(), strict=True):
            _panel(ax, values, forwards, ours)
            ax.set_title(generator).set_parse_math(False)
            ax.set(ylabel="AUROC of responses")
        axes[-1].set(xlabel=f"plain forwards of the reader (those below {LEAST:g} are drawn there)")
        return drawn


def _panel(
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
        ax.errorbar(x, y, yerr=[[y - low], [high - y]], color=colour, marker="o", ms=4, lw=0.8, capsize=2)
    heights = _apart([y for _, y, _, _ in known.values()], GAP)
    for (name, (x, y, _, _)), height in zip(known.items(), heights, strict=True):
        colour = DETECTOR if name in ours else "0.25"
        ax.annotate(
            name,
            (x, y),
            xytext=(8, (height - y) * 600),
            textcoords="offset points",
            fontsize=7,
            color=colour,
            va="center",
            weight="bold" if name in ours else "normal",
        )
    ax.set_xlim(LEAST / 2, max(x for x, _, _, _ in known.values()) * 8)


def _apart(values: list[float], gap: float) -> list[float]:
    """The values moved up where they are closer than `gap` to the next lower one."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = list(values)
    for low, high in pairwise(order):
        found[high] = max(found[high], found[low] + gap)
    return found
