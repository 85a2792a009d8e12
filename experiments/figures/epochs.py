"""F1 of spans by the epochs of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from experiments.figures.cost import draw_intervals
from experiments.figures.style import CONTROL, blank, themed
from lrp4rag.classifiers.card import Interval
from lrp4rag.report.figure_text import label


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
