"""Figures of a study: AUROC by what is learned from, and by what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.figures.style import blank, themed
from lrp4rag.report.figure_text import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_curve(curve: Mapping[int, Mapping[str, Metrics]]) -> Figure:
    """AUROC of responses by the number of sources that models learned from, a line a generator."""
    import seaborn as sns

    with themed():
        drawn = blank((6.4, 4.0))
        ax = drawn.subplots()
        names = list(next(iter(curve.values())))
        sizes = sorted(curve)
        for name, colour in zip(names, sns.color_palette("colorblind", len(names)), strict=True):
            _points(
                ax,
                [float(size) for size in sizes],
                [curve[size][name]["auroc"] for size in sizes],
                name,
                colour,
            )
        ax.set(xscale="log", xlabel="sources learned from", ylabel="AUROC of responses")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.legend(frameon=False)
        return drawn


def draw_cost(aurocs: Mapping[str, Mapping[str, Interval]], forwards: Mapping[str, float]) -> Figure:
    """AUROC of responses by plain forwards of the reader, a line a generator."""
    import seaborn as sns

    with themed():
        drawn = blank((6.4, 4.0))
        ax = drawn.subplots()
        ways = sorted(forwards, key=forwards.__getitem__)
        for (name, values), colour in zip(
            aurocs.items(), sns.color_palette("colorblind", len(aurocs)), strict=True
        ):
            _points(ax, [forwards[way] for way in ways], [values[way] for way in ways], name, colour)
        places = sorted({forwards[way] for way in ways})
        for k, place in enumerate(places):
            words = ", ".join(way for way in ways if forwards[way] == place)
            height = 1.02 + 0.06 * (k % 2)  # what costs nearly the same is not written on top of each other
            side = "right" if k and k == len(places) - 1 else "center"
            ax.annotate(words, (place, height), xycoords=("data", "axes fraction"), ha=side, color="0.4")
        ax.set(xlabel="plain forwards of the reader", ylabel="AUROC of responses", xlim=(0, None))
        ax.legend(frameon=False, loc="lower right")
        return drawn


def _points(ax: Axes, places: list[float], values: list[Interval], name: str, colour: object) -> None:
    """Values with their intervals; those that are undefined are left out."""
    known = [(place, one) for place, one in zip(places, values, strict=True) if one.value is not None]
    ax.errorbar(
        [place for place, _ in known],
        [one.value or 0 for _, one in known],
        yerr=[
            [(one.value or 0) - (one.low or 0) for _, one in known],
            [(one.high or 0) - (one.value or 0) for _, one in known],
        ],
        label=label(name),
        color=colour,
        marker="o",
        capsize=2,
        lw=1.4,
    )
