"""A verdict on a claim: one word, by an interval."""

from __future__ import annotations

from lrp4rag.classifiers.card import Interval
from lrp4rag.report.numbers import verdict


def worded(interval: Interval, null: float) -> str:
    """Holds, fails, or cannot be told."""
    found = verdict(interval, null)
    return "fails" if found == "does not hold" else found


def less(interval: Interval, number: float) -> Interval:
    """By how much it exceeds a fixed number."""
    return Interval(
        value=None if interval.value is None else interval.value - number,
        low=None if interval.low is None else interval.low - number,
        high=None if interval.high is None else interval.high - number,
    )
