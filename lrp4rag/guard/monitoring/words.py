"""A drift in words and numbers, as the terminal and the page both show it."""

from __future__ import annotations

from lrp4rag.guard.monitoring.drift import FEWEST, Change, Drift, Group, LeftOut
from lrp4rag.guard.monitoring.measures import Measure
from lrp4rag.guard.monitoring.tests import Difference
from lrp4rag.guard.monitoring.windows import Window
from lrp4rag.report.numbers import number, p_value, percent
from lrp4rag.util.text import one_line

NAME = 40
"""Characters of a topic, a generator or a category."""


def headline(drift: Drift) -> str:
    """Whether there is drift, in a sentence."""
    found = drift.found
    if not found:
        return "No drift was found"
    outcomes = [one for one in found if one.family == "outcome"]
    said = {one.said for one in outcomes}
    what = "quality is worse" if said == {"worse"} else "quality is better" if said == {"better"} else ""
    what = what or ("quality changed" if outcomes else "something behind quality changed")
    return f"Drift: {what} ({len(found)} of {len(drift.changes)} comparisons)"


def window_words(window: Window) -> str:
    """Its period, and what it holds."""
    told = f"{window.period} UTC: {len(window.answers):,} answers"
    if window.retrievals:
        told += f", {len(window.retrievals):,} checks of passages"
    return told + (f"; {window.unreadable:,} records could not be read" if window.unreadable else "")


def group_words(group: Group | None) -> str:
    return "" if group is None else f"{group.by} {one_line(group.name, NAME)}"


def measure_words(change: Change | LeftOut) -> str:
    """The measure, of a table with the category that changed most."""
    category = change.category if isinstance(change, Change) else None
    name = change.measure.name
    return name if category is None else f"{name}: {one_line(category, NAME)}"


def value_words(measure: Measure, value: float) -> str:
    """A mean or a share."""
    if measure.kind != "mean":
        return percent(value)
    return number(value, _digits(value))


def change_words(measure: Measure, difference: Difference) -> str:
    """+0.066 [+0.046, +0.086], of shares in points: +7.9 [+4.4, +11.3]."""
    scale, digits = (1.0, _digits(difference.before)) if measure.kind == "mean" else (100.0, 1)
    value, low, high = (scale * x for x in (difference.value, difference.low, difference.high))
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def p_words(change: Change) -> str:
    """For all tests together; nothing where none was possible."""
    return p_value(change.adjusted) if change.difference.varies else ""


def from_to(change: Change, difference: Difference | None = None) -> str:
    """0.43 to 0.61"""
    one = change.difference if difference is None else difference
    return f"{value_words(change.measure, one.before)} to {value_words(change.measure, one.after)}"


def left_out_words(drift: Drift) -> list[str]:
    """What was not compared, and why: groups are counted only."""
    overall = [one for one in drift.left_out if one.group is None]
    missing = [one.measure.name for one in overall if not sum(one.counts)]
    lines = [f"not recorded: {', '.join(missing)}"] if missing else []
    for one in overall:
        before, after = one.counts
        if before + after:
            lines.append(f"{one.measure.name}: {before} values before and {after} after, {FEWEST} are needed")
    groups = {group_words(one.group): one.counts for one in drift.left_out if one.group is not None}
    few = {name for name in groups if not any(group_words(one.group) == name for one in drift.changes)}
    if few:
        lines.append(f"too few answers to compare within: {', '.join(sorted(few))}")
    return lines


def assumptions(drift: Drift) -> list[str]:
    """What the p-values rest on."""
    tested = sum(one.difference.varies for one in drift.changes)
    return [
        f"p is that of {tested} tests together (Holm): if nothing drifted, one of them or more is below "
        f"{drift.alpha:g} in at most {percent(drift.alpha)} of such comparisons. A change of less than "
        f"{drift.least:g} (of lengths, passages and retrieval scores: {percent(drift.least)} of the mean) is "
        "none. Shares change by points.",
        "Answers are taken to be independent of each other. Where one conversation, one prompt or one batch "
        "makes many of them, p is too small and intervals are too narrow: look at the single days.",
    ]


def power_words(drift: Drift) -> str:
    """Which change of the mean probability would have been seen."""
    change = drift.of("probability")
    if change is None or not change.difference.varies:
        return ""
    least = f"{drift.detectable(change):.3f}"
    return f"A change of the mean probability by {least} would have been found four times out of five."


def _digits(value: float) -> int:
    return 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
