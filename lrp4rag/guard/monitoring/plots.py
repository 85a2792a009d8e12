"""Two windows as figures: day by day, and side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.guard.monitoring.drift import Change, Drift
from lrp4rag.guard.monitoring.measures import MEASURES, Measure
from lrp4rag.guard.monitoring.tests import Z
from lrp4rag.guard.monitoring.windows import Observed
from lrp4rag.guard.policy import ACTIONS
from lrp4rag.report.figure_text import drawing, label, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, AFTER, WORSE = "#777777", "#0072b2", "#d55e00"
WIDTH, DPI = 10.0, 120
STRETCHES = 35
"""Of time, at most, that have a point each."""
FEWEST = 5
"""Answers of a stretch that has a point."""
MOST_GROUPS = 12

_OF = {one.name: one for one in MEASURES}
_LINES = ("probability", "withheld", "retrieval score")


def over_time(drift: Drift) -> bytes:
    """Means and shares of short stretches with their 95 % intervals, as PNG."""
    shown = [_OF[name] for name in _LINES if drift.of(name) is not None]
    return _drawn(lambda: _figure_over_time(drift, shown))


def side_by_side(drift: Drift) -> bytes:
    """How probabilities and retrieval scores (or else lengths) lie, what was done, and the change of the
    probability within groups, as PNG."""
    return _drawn(lambda: _figure_side_by_side(drift))


def _drawn(make: Callable[[], Figure]) -> bytes:
    import seaborn as sns

    with sns.axes_style("ticks"), sns.plotting_context("paper"), drawing():
        figure = make()
        sns.despine(figure)
        return png_of(figure, DPI)


def _blank(height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _figure_over_time(drift: Drift, measures: Sequence[Measure]) -> Figure:
    figure = _blank(1.7 * max(len(measures), 1) + 0.5)
    axes = figure.subplots(max(len(measures), 1), 1, squeeze=False, sharex=True)[:, 0]
    for measure, ax in zip(measures, axes, strict=False):
        for window, colour, name in ((drift.baseline, BEFORE, "baseline"), (drift.window, AFTER, "window")):
            places, means, errors = _stretches(drift, window.answers, measure)
            # What cannot be below zero has no interval there.
            below = errors if measure.relative else np.minimum(errors, means)
            ax.errorbar(
                places,
                means,
                yerr=[below, errors],
                color=colour,
                marker="o",
                ms=3,
                lw=1,
                elinewidth=0.8,
                label=name,
            )
        change = drift.of(measure.name)
        if change is not None:
            ax.axhline(change.difference.before, color=BEFORE, ls=":", lw=1)
        ax.set_title(f"{measure.name}{_unit(measure)}", loc="left")
        ax.margins(y=0.15)
    axes[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0)
    _dates(axes[-1])
    return figure


def _unit(measure: Measure) -> str:
    return ", share of answers" if measure.kind == "share" else ", mean"


def _stretches(
    drift: Drift, answers: Sequence[Observed], measure: Measure
) -> tuple[list[datetime], list[float], list[float]]:
    """The middle, the mean and half of the interval of each stretch with answers enough."""
    start = drift.baseline.period.start
    length = _length(drift)
    found: dict[int, list[float]] = {}
    for one in answers:
        if (value := measure.value(one)) is not None:
            found.setdefault((one.time - start) // length, []).append(float(value))
    some = [(k, np.array(found[k])) for k in sorted(found) if len(found[k]) >= FEWEST]
    return (
        [start + (k + 0.5) * length for k, _ in some],
        [float(values.mean()) for _, values in some],
        [float(Z * values.std(ddof=1) / np.sqrt(len(values))) for _, values in some],
    )


def _length(drift: Drift) -> timedelta:
    """Of a stretch: whole hours below a day, then whole days."""
    total = drift.window.period.end - drift.baseline.period.start
    hours = total / STRETCHES / timedelta(hours=1)
    steps = (1, 2, 3, 6, 12, 24)
    return timedelta(hours=next((step for step in steps if step >= hours), 24 * int(np.ceil(hours / 24))))


def _dates(ax: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    ax.set_xlabel("UTC")


def _figure_side_by_side(drift: Drift) -> Figure:
    groups = [one for one in drift.changes if one.group is not None and one.measure.name == "probability"]
    scored = "retrieval score" if drift.of("retrieval score") is not None else "length"
    rows = 2 if groups else 1
    figure = _blank(2.6 + (0.9 + 0.24 * min(len(groups), MOST_GROUPS) if groups else 0) + 0.3)
    grid = figure.add_gridspec(
        rows, 3, height_ratios=[2.6, 0.9 + 0.24 * min(len(groups), MOST_GROUPS)][:rows]
    )
    _distribution(drift, _OF["probability"], figure.add_subplot(grid[0, 0]))
    _distribution(drift, _OF[scored], figure.add_subplot(grid[0, 1]))
    _actions(drift, figure.add_subplot(grid[0, 2]))
    if groups:
        _forest(groups, figure.add_subplot(grid[1, :]))
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _distribution(drift: Drift, measure: Measure, ax: Axes) -> None:
    """Shares of answers in bins that both windows share."""
    both = [
        np.array([float(v) for one in window.answers if (v := measure.value(one)) is not None])
        for window in (drift.baseline, drift.window)
    ]
    joined = np.concatenate(both)
    if len(joined):
        low, high = (0.0, 1.0) if measure.name == "probability" else np.quantile(joined, [0.005, 0.995])
        edges = np.linspace(low, high if high > low else low + 1.0, 21)
        for values, colour, name in zip(both, (BEFORE, AFTER), ("baseline", "window"), strict=True):
            if len(values):
                counts, _ = np.histogram(values, edges)
                ax.stairs(100 * counts / len(values), edges, color=colour, label=name, lw=1.4)
                ax.stairs(100 * counts / len(values), edges, color=colour, fill=True, alpha=0.12)
    ax.set_title(measure.name, loc="left")
    ax.set(ylabel="% of answers", ylim=(0, None))


def _actions(drift: Drift, ax: Axes) -> None:
    """Shares of actions, with Wilson's intervals."""
    change = drift.of("actions")
    if change is None or change.parts is None:
        return
    names = [one for one in ACTIONS if one in change.parts]
    places = np.arange(len(names))
    windows = ((drift.baseline, BEFORE, -0.2), (drift.window, AFTER, 0.2))
    for window, colour, shift in windows:
        shares = [_share(window.answers, name) for name in names]
        values = np.array([100 * value for value, _, _ in shares])
        errors = np.array(
            [[100 * (v - low) for v, low, _ in shares], [100 * (high - v) for v, _, high in shares]]
        )
        ax.barh(places + shift, values, 0.38, color=colour, alpha=0.75, xerr=errors, error_kw={"lw": 0.8})
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_title("actions", loc="left")
    ax.set(xlabel="% of answers", xlim=(0, None))


def _share(answers: Sequence[Observed], action: str) -> tuple[float, float, float]:
    from lrp4rag.guard.policy.simulate import Share

    found = Share(sum(one.action == action for one in answers), len(answers))
    assert found.value is not None
    assert found.interval is not None
    return found.value, *found.interval


def _forest(changes: Sequence[Change], ax: Axes) -> None:
    """The change within each group; of many, those that changed most."""
    some = sorted(changes, key=lambda one: -one.size)[:MOST_GROUPS]
    some.sort(key=lambda one: (one.group.by, one.group.name) if one.group else ("", ""), reverse=True)
    for place, one in enumerate(some):
        difference = one.difference
        colour = WORSE if one.said == "worse" else AFTER if one.said else BEFORE
        errors = [[difference.value - difference.low], [difference.high - difference.value]]
        ax.errorbar(difference.value, place, xerr=errors, color=colour, marker="o", ms=4, lw=1.4)
    ax.axvline(0, color="0.6", lw=0.8, ls=":")
    names = [label(f"{one.group.by} {one.group.name}") for one in some if one.group]
    ax.set_yticks(np.arange(len(some)), names)
    ax.set_title("change of the mean probability, with 95 % intervals (orange: worse)", loc="left")
    ax.margins(y=0.15)
