"""Two windows day by day, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from lrp4rag.guard.monitoring.drift import MEASURES, Drift, Measure
from lrp4rag.guard.monitoring.statistics import Z
from lrp4rag.guard.monitoring.windows import Answer
from lrp4rag.report.figure_text import drawing, png_of

BEFORE, AFTER = "#777777", "#0072b2"
WIDTH, DPI = 10.0, 120
MOST_POINTS = 35
SMALLEST_POINT = 5
"""Answers of an interval of time that has a point."""


def over_time(drift: Drift) -> bytes:
    """Draw means and proportions of short intervals of time with their 95 % intervals, as PNG."""
    import seaborn as sns
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    names = ("probability", "withheld", "retrieval score")
    measures = [measure for measure in MEASURES if measure.name in names and drift.of(measure.name)]
    with sns.axes_style("ticks"), sns.plotting_context("paper"), drawing():
        figure = Figure(figsize=(WIDTH, 1.7 * max(len(measures), 1) + 0.5), layout="constrained")
        FigureCanvasAgg(figure)
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
        sns.despine(figure)
        return png_of(figure, DPI)


def _windows(drift: Drift) -> tuple[tuple[Sequence[Answer], str, str], ...]:
    return (drift.baseline.answers, BEFORE, "baseline"), (drift.window.answers, AFTER, "window")


def _points(
    drift: Drift, answers: Sequence[Answer], measure: Measure
) -> tuple[list[datetime], list[float], list[float]]:
    """Return the middle, the mean and half of the 95 % interval of each interval of time with answers enough:
    whole hours below a day, then whole days."""
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
        [float(point.mean()) for _, point in points],
        [float(Z * point.std(ddof=1) / np.sqrt(len(point))) for _, point in points],
    )
