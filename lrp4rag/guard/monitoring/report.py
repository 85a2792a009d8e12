"""A drift and advice on the terminal, as JSON, and as one self-contained page without network or script."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lrp4rag.guard.monitoring.drift import (
    GROUPS,
    MEASURES,
    NAME,
    SMALLEST_SAMPLE,
    Change,
    Difference,
    Direction,
    Drift,
    Group,
    Measure,
    Z,
    heterogeneity,
    measure_words,
    value_words,
)
from lrp4rag.guard.monitoring.windows import VERSIONS, Answer, Window
from lrp4rag.report.figure_text import drawing, new_figure, png_of
from lrp4rag.report.numbers import p_value, percent
from lrp4rag.report.templates import asset, hash_source, html_template
from lrp4rag.util.text import encodable, one_line

CAUSES = {
    "unavailable": "More answers could not be judged ({}): look for deadlines and refusals in the server's "
    "log and its /metrics, and at the upstream.",
    "abstained": "More answers are unlike what the detector learned from ({}): look for another language, "
    "format or length.",
    "knowledge gap": "More questions find no passage that is fit to answer from ({}): look at the index, at "
    "what expired, and at the gate's minimum.",
    "contradicted": "More answers have values that a passage has otherwise ({}): see whether the generator "
    "or its prompt changed, or whether older versions of documents are retrieved beside newer ones.",
    "unsupported": "More answers say what no passage says ({}): see whether the generator or its prompt "
    "changed, or whether what is retrieved got weaker.",
    "retrieval score": "Retrieval is weaker ({}): look at the index and its embedder.",
    "score at the gate": "Passages score lower at the gate ({}): look at the index and its embedder.",
    "nothing retrieved": "More requests find no passage ({}): look at the index, and at what expired.",
}
CHANGES = {
    "length": "Answers are of another length ({} characters): the generator or its prompt changed. The "
    "longer an answer, the likelier it has something that is hallucinated.",
    "passages": "Answers rest on another number of passages ({}): retrieval changed.",
    **{
        f"{by}s": f"Other {by}s are asked for or used: {{name}} went from {{}} of the answers. What changed "
        f"overall may be that; compare within {by}s."
        for by in GROUPS
    },
}


def advice(drift: Drift) -> list[str]:
    """Say what to do, in sentences, the likeliest causes first; nothing where nothing drifted."""
    if not drift.drifted:
        return []
    lines = [*_versions(drift), *_overall(drift, CAUSES, "worse"), *_groups(drift)]
    lines += _overall(drift, CHANGES, "changed")
    outcomes = {change.direction for change in drift.drifted if change.measure.family == "outcome"}
    if "worse" in outcomes:
        if not lines:
            lines.append("Nothing that is recorded tells why: read some of the answers.")
        since = drift.window.period.start.strftime("%Y-%m-%dT%H:%MZ")
        lines.append(f"Look at the answers: lrp4rag review --since {since}")
    elif outcomes:
        lines.append("If it is meant to stay so, take this window as the next baseline.")
    return lines


def _versions(drift: Drift) -> Iterator[str]:
    for name in VERSIONS:
        before, after = (sorted(window.versions(name)) for window in (drift.baseline, drift.window))
        if before and after and before != after:
            lists = (
                ", ".join(one_line(version, NAME) for version in versions) for versions in (before, after)
            )
            what = "decisions" if name == "policy" else "scores"
            yield (
                f"The {name} changed ({' to '.join(lists)}): {what} before and after are not made by the "
                "same rules."
            )


def _overall(drift: Drift, causes: Mapping[str, str], direction: Direction) -> Iterator[str]:
    for name, words in causes.items():
        change = drift.of(name)
        if change is not None and change.direction == direction:
            yield words.format(_from_to(change), name=one_line(str(change.category), NAME))


def _groups(drift: Drift) -> Iterator[str]:
    """Yield topics with weaker retrieval, and topics and generators that got worse more than others."""
    weak = {change.group: change for change in _standing_out(drift, "topic", "retrieval score")}
    for change in weak.values():
        yield (
            f"Topic {_name(change)} may lack documents: the best that is retrieved for it went from a score "
            f"of {_from_to(change)}. Add what is asked for, or see what left the index."
        )
    measures = [measure.name for measure in MEASURES if measure.grouped and measure.family == "outcome"]
    for by in GROUPS:
        changes = [change for name in measures for change in _standing_out(drift, by, name)]
        worst = {change.group: change for change in sorted(changes, key=lambda change: change.size)}
        for change in sorted(worst.values(), key=lambda change: -change.size):
            if by == "generator":
                why = "its version, its prompt or its sampling may have changed"
            elif change.group in weak:
                why = "what is retrieved for it is weaker too"
            else:
                why = "what is retrieved scores as before, or is not recorded: its documents may be outdated"
            size = f"{change.measure.name} {_from_to(change)}"
            yield f"Answers of {by} {_name(change)} got worse ({size}), more than those of others: {why}."


def _standing_out(drift: Drift, by: str, measure: str) -> list[Change]:
    """Return the groups of which a measure got worse by more than that of all groups, the worst first; none
    where chance alone explains that groups differ. A drift of one topic shows in every generator that answers
    it, here more and there less: that is no drift of a generator."""
    changes = [
        change
        for change in drift.changes
        if change.measure.name == measure and change.group is not None and change.group.by == by
    ]
    if heterogeneity([change.difference for change in changes]) > drift.alpha:
        return []
    overall = drift.of(measure)
    least = 0.0 if overall is None else abs(overall.difference.value)
    worse = [
        change for change in changes if change.direction == "worse" and abs(change.difference.value) > least
    ]
    return sorted(worse, key=lambda change: -change.size)


def _name(change: Change) -> str:
    return "" if change.group is None else one_line(change.group.name, NAME)


def _from_to(change: Change) -> str:
    """Write both values: "0.43 to 0.61"."""
    before, after = change.difference.before, change.difference.after
    return f"{value_words(change.measure, before)} to {value_words(change.measure, after)}"


STYLES = {"worse": "bold red", "better": "bold green", "changed": "bold yellow", "": ""}
_CSS = """
h1.bad { color: var(--bad); }
h1.good { color: var(--good); }
section { margin-top: 1.5rem; overflow-x: auto; }
.note { font-size: .85rem; color: var(--soft); }
.number { text-align: end; font-variant-numeric: tabular-nums; }
mark { background: none; color: var(--bad); font-weight: 600; }
img { display: block; width: 100%; max-width: 60rem; height: auto; margin-top: .4rem; }
img { background: #fff; border-radius: 8px; }
td { white-space: nowrap; }
tbody th { font-weight: 400; color: var(--ink); }
"""


def render(drift: Drift) -> RenderableType:
    """Render all answers measure by measure, the groups that drifted, and what to do."""
    overall = [change for change in drift.changes if change.group is None]
    groups = [change for change in drift.changes if change.group is not None]
    drifted = [change for change in groups if change.drifted]
    blocks: list[RenderableType] = [
        Text(headline(drift), style="bold red" if drift.drifted else "bold"),
        Text(f"baseline  {_window_words(drift.baseline)}"),
        Text(f"window    {_window_words(drift.window)}"),
        Text(),
        _table(overall),
    ]
    if groups:
        counts = f"Within topics and generators, {len(drifted)} of {len(groups)} comparisons drifted"
        blocks += [Text(), Text(counts + (":" if drifted else "."))]
    if drifted:
        blocks.append(_table(drifted))
    blocks.append(Text())
    blocks += [Text(f"Next: {line}") for line in advice(drift)]
    return Renderables(*blocks, *(Text(line, style="dim") for line in _notes(drift)))


def _table(changes: list[Change]) -> Table:
    """Build a table with a line for each change, below a line for its group."""
    table = Table(box=None, pad_edge=False)
    for name in ("", "baseline", "window", "change [95 %]", "p", ""):
        table.add_column(name, justify="left" if not name else "right", no_wrap=bool(name))
    group = None
    for change in changes:
        if change.group != group:
            group = change.group
            table.add_row(Text(_group_words(group), style="bold"))
        cells = _cells(change)
        name = ("  " if group else "") + measure_words(change)
        direction = Text(change.direction, style=STYLES[change.direction])
        table.add_row(name, cells["before"], cells["after"], cells["change"], cells["adjusted"], direction)
    return table


def drift_page(drift: Drift, command: str) -> str:
    """Build the page: what to do, a figure, and every comparison; `command` stands in the small print."""
    style = asset("base.css") + _CSS
    directions = {change.direction for change in drift.drifted}
    overall = [_cells(change) for change in drift.changes if change.group is None]
    grouped = [_cells(change) for change in drift.changes if change.group is not None]
    page = html_template("drift.html.j2", Path(__file__).parent).render(
        headline=headline(drift),
        outcome="bad" if "worse" in directions else "none" if directions else "good",
        baseline=_window_words(drift.baseline),
        window=_window_words(drift.window),
        advice=advice(drift),
        figure=base64.b64encode(over_time(drift)).decode(),
        tables=[("All answers", overall), *([("Within topics and generators", grouped)] if grouped else [])],
        notes=_notes(drift),
        command=command,
        style=Markup(style),
        style_source=Markup(hash_source(style)),
    )
    return encodable(page)


def record(drift: Drift) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    return {
        "drift": bool(drift.drifted),
        "headline": headline(drift),
        "alpha": drift.alpha,
        "least": drift.least,
        "baseline": _window_record(drift.baseline),
        "window": _window_record(drift.window),
        "changes": [_change_record(change) for change in drift.changes],
        "not_compared": [
            {
                "measure": skipped.measure.name,
                "group": skipped.group and asdict(skipped.group),
                "counts": list(skipped.counts),
            }
            for skipped in drift.skipped
        ],
        "next": advice(drift),
        "assumptions": _assumptions(drift),
    }


def _window_record(window: Window) -> dict[str, Any]:
    return {
        "start": window.period.start.isoformat(),
        "end": window.period.end.isoformat(),
        "answers": len(window.answers),
        "retrievals": len(window.retrievals),
        "unreadable": window.unreadable,
    }


def _change_record(change: Change) -> dict[str, Any]:
    parts = change.parts
    return {
        "measure": change.measure.name,
        "group": change.group and asdict(change.group),
        "category": change.category,
        **_difference_record(change.difference),
        "adjusted_p": change.adjusted,
        "family": change.family,
        "drifted": change.drifted,
        "said": change.direction,
        "parts": parts and {name: _difference_record(difference) for name, difference in parts.items()},
    }


def _difference_record(difference: Difference) -> dict[str, Any]:
    return {**asdict(difference), "difference": difference.value}


def headline(drift: Drift) -> str:
    """Say in a sentence whether there is drift."""
    if not drift.drifted:
        return "No drift was found"
    outcomes = {change.direction for change in drift.drifted if change.family == "outcome"}
    words = {
        ("worse",): "quality is worse",
        ("better",): "quality is better",
        (): "something behind quality changed",
    }
    news = words.get(tuple(outcomes), "quality changed")
    return f"Drift: {news} ({len(drift.drifted)} of {len(drift.changes)} comparisons)"


def _window_words(window: Window) -> str:
    words = f"{window.period} UTC: {len(window.answers):,} answers"
    if window.retrievals:
        words += f", {len(window.retrievals):,} checks of passages"
    return words + (f"; {window.unreadable:,} records could not be read" if window.unreadable else "")


def _group_words(group: Group | None) -> str:
    return "" if group is None else f"{group.by} {one_line(group.name, NAME)}"


def _cells(change: Change) -> dict[str, str]:
    """Return the cells of a change; p-values only where a test could have found anything. A change of
    proportions is in points, as +7.9 [+4.4, +11.3]."""
    difference, mean = change.difference, change.measure.kind == "mean"
    size = abs(difference.before)
    digits = 1 if not mean else 3 if size < 10 else 1 if size < 1000 else 0
    numbers = (difference.value, difference.low, difference.high)
    value, low, high = (f"{number * (1 if mean else 100):+.{digits}f}" for number in numbers)
    return {
        "name": " · ".join(filter(None, (_group_words(change.group), measure_words(change)))),
        "before": value_words(change.measure, difference.before),
        "after": value_words(change.measure, difference.after),
        "change": f"{value} [{low}, {high}]",
        "p": p_value(difference.p) if difference.varies else "",
        "adjusted": p_value(change.adjusted) if difference.varies else "",
        "test": difference.test if difference.varies else "",
        "said": change.direction,
    }


def _notes(drift: Drift) -> list[str]:
    return [*_assumptions(drift), *(f"Not compared: {line}." for line in _skipped_words(drift))]


def _skipped_words(drift: Drift) -> Iterable[str]:
    """Say what was not compared, and why; groups are counted only."""
    overall = [skipped for skipped in drift.skipped if skipped.group is None]
    if missing := [skipped.measure.name for skipped in overall if not sum(skipped.counts)]:
        yield f"not recorded: {', '.join(missing)}"
    for skipped in overall:
        before, after = skipped.counts
        if before + after:
            needed = f"{SMALLEST_SAMPLE} are needed"
            yield f"{skipped.measure.name}: {before} values before and {after} after, {needed}"
    compared = {change.group for change in drift.changes}
    if few := {_group_words(skipped.group) for skipped in drift.skipped if skipped.group not in compared}:
        yield f"too few answers to compare within: {', '.join(sorted(few))}"


def _assumptions(drift: Drift) -> list[str]:
    """Return the assumptions of the p-values."""
    tested = sum(change.difference.varies for change in drift.changes)
    return [
        f"p is that of {tested} tests together (Holm): if nothing drifted, one of them or more is below "
        f"{drift.alpha:g} in at most {percent(drift.alpha)} of such comparisons. A change of less than "
        f"{drift.least:g} (of lengths, passages and retrieval scores: {percent(drift.least)} of the mean) is "
        "none. Shares change by points.",
        "Answers are taken to be independent of each other. Where one conversation, one prompt or one batch "
        "makes many of them, p is too small and intervals are too narrow: look at the single days.",
    ]


BEFORE, AFTER = "#777777", "#0072b2"
WIDTH, DPI = 10.0, 120
MOST_POINTS = 35
SMALLEST_POINT = 5
"""The fewest answers of an interval of time that has a point."""


def over_time(drift: Drift) -> bytes:
    """Draw means and proportions of short intervals of time with their 95 % intervals, as PNG."""
    import seaborn as sns
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    names = ("probability", "withheld", "retrieval score")
    measures = [measure for measure in MEASURES if measure.name in names and drift.of(measure.name)]
    with sns.axes_style("ticks"), sns.plotting_context("paper"), drawing():
        figure = new_figure(WIDTH, 1.7 * max(len(measures), 1) + 0.5)
        axes = figure.subplots(max(len(measures), 1), 1, squeeze=False, sharex=True)[:, 0]
        for measure, ax in zip(measures, axes, strict=False):
            for window, colour, name in (
                (drift.baseline, BEFORE, "baseline"),
                (drift.window, AFTER, "window"),
            ):
                times, means, errors = _points(drift, window.answers, measure)
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
