"""Forest plot: detectors and controls on one generator, each a dot and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lrp4rag.classifiers.card import Metrics
from lrp4rag.experiments.figures.style import CONTROL, DETECTOR, PUBLISHED, blank, themed
from lrp4rag.experiments.paper.published import Published
from lrp4rag.report.figure_text import LONG_NAME, label

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["detector", "control"]
COLOURS: dict[Kind, str] = {"detector": DETECTOR, "control": CONTROL}
NAMES = {"accuracy": "accuracy", "auroc": "AUROC", "f1": "F1", "precision": "precision", "recall": "recall"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the plot. `published` is what the paper reports of the same classifier and generator."""

    name: str
    kind: Kind
    metrics: Metrics
    published: Published | None = None


def table(entries: Sequence[Entry]) -> pd.DataFrame:
    """One line an entry and metric, the paper's figure beside ours where there is one."""
    import pandas as pd

    return pd.DataFrame(
        {
            "name": entry.name,
            "kind": entry.kind,
            "metric": metric,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
            "paper": getattr(entry.published, metric, None),
        }
        for entry in entries
        for metric, interval in entry.metrics.items()
    )


def draw(
    entries: Sequence[Entry], metrics: Sequence[str] = ("auroc", "accuracy", "f1"), *, title: str = ""
) -> Figure:
    """A panel a metric, entries sorted by the first of them, the best on top."""
    first = metrics[0]
    ranked = sorted(entries, key=lambda entry: _value(entry, first))
    with themed():
        drawn = blank((10.0, 0.27 * len(ranked) + 1.3))
        axes = drawn.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
        for ax, metric in zip(axes, metrics, strict=True):
            for place, entry in enumerate(ranked):
                _entry(ax, place, entry, metric)
            ax.set(title=NAMES.get(metric, metric), ylim=(-0.7, len(ranked) - 0.3))
            ax.grid(visible=False, axis="y")
            ax.margins(x=0.06)
        axes[0].set_yticks(range(len(ranked)), [label(entry.name, LONG_NAME) for entry in ranked])
        _legend(drawn, ranked)
        if title:
            drawn.suptitle(title)
        return drawn


def _entry(ax: Axes, place: int, entry: Entry, metric: str) -> None:
    interval, colour = entry.metrics.get(metric), COLOURS[entry.kind]
    if interval is not None and interval.value is not None:
        low = interval.value if interval.low is None else interval.low
        high = interval.value if interval.high is None else interval.high
        ax.plot([low, high], [place, place], color=colour, lw=1.4, solid_capstyle="butt")
        ax.plot(interval.value, place, "o", color=colour, ms=5)
    paper = getattr(entry.published, metric, None)
    if paper is not None:
        ax.plot(paper, place, "D", markerfacecolor="none", markeredgecolor=PUBLISHED, ms=5)


def _legend(drawn: Figure, entries: Sequence[Entry]) -> None:
    from matplotlib.lines import Line2D

    kinds = [kind for kind in COLOURS if any(entry.kind == kind for entry in entries)]
    handles: list[Any] = [Line2D([], [], color=COLOURS[kind], marker="o", ms=5, lw=1.4) for kind in kinds]
    labels: list[str] = [*kinds]
    if any(entry.published for entry in entries):
        handles.append(Line2D([], [], ls="", marker="D", markerfacecolor="none", markeredgecolor=PUBLISHED))
        labels.append("the paper's figure")
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def _value(entry: Entry, metric: str) -> float:
    interval = entry.metrics.get(metric)
    return -1.0 if interval is None or interval.value is None else interval.value
