"""Differences with their intervals: a panel a generator, a line a change, zero where nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrp4rag.classifiers.card import Interval
from lrp4rag.experiments.figures.style import CONTROL, DETECTOR, panels, themed
from lrp4rag.report.figure_text import LONG_NAME
from lrp4rag.report.figure_text import label as label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Difference:
    generator: str
    name: str
    interval: Interval


def draw(found: Sequence[Difference], label: str) -> Figure:
    """`label` is what the horizontal axis shows. Lines without effect, by their interval, are grey."""
    generators = list(dict.fromkeys(each.generator for each in found))
    names = list(dict.fromkeys(each.name for each in found))
    with themed():
        drawn, axes = panels(1, generators, height=0.28 * len(names) + 0.7, sharex=True, sharey=True)
        for ax, generator in zip(axes[0], generators, strict=True):
            ax.axvline(0, color="0.4", ls=":", lw=1)
            for each in found:
                if each.generator == generator:
                    _line(ax, names.index(each.name), each.interval)
            ax.set(xlabel=label, ylim=(len(names) - 0.4, -0.6))
            ax.grid(visible=False, axis="y")
        axes[0, 0].set_yticks(range(len(names)), [label_of(name, LONG_NAME) for name in names])
        return drawn


def _line(ax: Axes, place: int, interval: Interval) -> None:
    if interval.value is None or interval.low is None or interval.high is None:
        return
    colour = CONTROL if interval.low <= 0 <= interval.high else DETECTOR
    ax.plot([interval.low, interval.high], [place, place], color=colour, lw=1.4, solid_capstyle="butt")
    ax.plot(interval.value, place, "o", color=colour, ms=5)
