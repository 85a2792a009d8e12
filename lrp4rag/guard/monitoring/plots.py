"""Two windows as figures: day by day, and side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.guard.monitoring.drift import MEASURES, Drift, Measure
from lrp4rag.guard.monitoring.statistics import Z
from lrp4rag.guard.monitoring.windows import Answer
from lrp4rag.guard.policy import ACTIONS
from lrp4rag.guard.policy.simulate import Share
from lrp4rag.report.figure_text import drawing, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, AFTER = "#777777", "#0072b2"
WIDTH, DPI = 10.0, 120
MOST_POINTS = 35
SMALLEST_POINT = 5
"""Answers of an interval of time that has a point."""

_BY_NAME = {measure.name: measure for measure in MEASURES}


def over_time(drift: Drift) -> bytes:
    """Means and proportions of short intervals of time with their 95 % intervals, as PNG."""
    names = ("probability", "withheld", "retrieval score")
    measures = [_BY_NAME[name] for name in names if drift.of(name) is not None]

    def draw(figure: Figure) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        axes = figure.subplots(max(len(measures), 1), 1, squeeze=False, sharex=True)[:, 0]
        for measure, ax in zip(measures, axes, strict=False):
            for answers, colour, name in _windows(drift):
                times, means, errors = _points(drift, answers, measure)
                # What cannot be below zero has no interval there.
                below = errors if measure.relative else np.minimum(errors, means)
                style = {"color": colour, "marker": "o", "ms": 3, "lw": 1, "elinewidth": 0.8, "label": name}
                ax.errorbar(times, means, yerr=[below, errors], **style)
            if (change := drift.of(measure.name)) is not None:
                ax.axhline(change.difference.before, color=BEFORE, ls=":", lw=1)
            unit = "proportion of answers" if measure.kind == "proportion" else "mean"
            ax.set_title(f"{measure.name}, {unit}", loc="left")
            ax.margins(y=0.15)
        axes[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)
        locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
        axes[-1].set_xlabel("UTC")

    return _png(1.7 * max(len(measures), 1) + 0.5, draw)


def side_by_side(drift: Drift) -> bytes:
    """The distributions of probabilities and of retrieval scores (or else lengths), and actions, as PNG."""
    scores = "retrieval score" if drift.of("retrieval score") is not None else "length"

    def draw(figure: Figure) -> None:
        first, second, third = figure.subplots(1, 3)
        _distribution(drift, _BY_NAME["probability"], first)
        _distribution(drift, _BY_NAME[scores], second)
        _actions(drift, third)
        handles, names = first.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper right", ncols=2, frameon=False)

    return _png(2.9, draw)


def _png(height: float, draw: Callable[[Figure], None]) -> bytes:
    import seaborn as sns
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with sns.axes_style("ticks"), sns.plotting_context("paper"), drawing():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        sns.despine(figure)
        return png_of(figure, DPI)


def _windows(drift: Drift) -> tuple[tuple[Sequence[Answer], str, str], ...]:
    return (drift.baseline.answers, BEFORE, "baseline"), (drift.window.answers, AFTER, "window")


def _points(
    drift: Drift, answers: Sequence[Answer], measure: Measure
) -> tuple[list[datetime], list[float], list[float]]:
    """The middle, the mean and half of the 95 % interval of each interval of time with answers enough: whole
    hours below a day, then whole days."""
    start = drift.baseline.period.start
    hours = (drift.window.period.end - start) / MOST_POINTS / timedelta(hours=1)
    steps = (1, 2, 3, 6, 12, 24)
    length = timedelta(hours=next((step for step in steps if step >= hours), 24 * int(np.ceil(hours / 24))))
    values: dict[int, list[float]] = {}
    for answer in answers:
        if (value := measure.value(answer)) is not None:
            values.setdefault((answer.time - start) // length, []).append(float(value))
    points = [(k, np.array(values[k])) for k in sorted(values) if len(values[k]) >= SMALLEST_POINT]
    return (
        [start + (k + 0.5) * length for k, _ in points],
        [float(some.mean()) for _, some in points],
        [float(Z * some.std(ddof=1) / np.sqrt(len(some))) for _, some in points],
    )


def _distribution(drift: Drift, measure: Measure, ax: Axes) -> None:
    """Proportions of answers in bins that both windows share."""
    samples: list[NDArray[np.float64]] = [
        np.array([float(value) for answer in answers if (value := measure.value(answer)) is not None])
        for answers, _, _ in _windows(drift)
    ]
    values = np.concatenate(samples)
    if len(values):
        low, high = (0.0, 1.0) if measure.name == "probability" else np.quantile(values, [0.005, 0.995])
        edges = np.linspace(low, high if high > low else low + 1.0, 21)
        for sample, (_, colour, name) in zip(samples, _windows(drift), strict=True):
            if len(sample):
                counts, _ = np.histogram(sample, edges)
                ax.stairs(100 * counts / len(sample), edges, color=colour, label=name, lw=1.4)
                ax.stairs(100 * counts / len(sample), edges, color=colour, fill=True, alpha=0.12)
    ax.set_title(measure.name, loc="left")
    ax.set(ylabel="% of answers", ylim=(0, None))


def _actions(drift: Drift, ax: Axes) -> None:
    """Proportions of actions, with Wilson's intervals."""
    change = drift.of("actions")
    names = [name for name in ACTIONS if change is not None and name in (change.parts or {})]
    places = np.arange(len(names))
    for (answers, colour, _), shift in zip(_windows(drift), (-0.2, 0.2), strict=True):
        shares = [Share(sum(answer.action == name for answer in answers), len(answers)) for name in names]
        values = np.array([100 * (share.value or 0.0) for share in shares])
        bounds = 100 * np.array([share.interval or (0.0, 0.0) for share in shares]).reshape(-1, 2).T
        errors = np.abs(bounds - values)
        ax.barh(places + shift, values, 0.38, color=colour, alpha=0.75, xerr=errors, error_kw={"lw": 0.8})
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_title("actions", loc="left")
    ax.set(xlabel="% of answers", xlim=(0, None))
