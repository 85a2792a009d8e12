"""Numbers as every report writes them: values, intervals, percents, p-values, and the names of metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrp4rag.classifiers.card import Interval

METRICS = {
    "auroc": "AUROC",
    "accuracy": "accuracy",
    "balanced_accuracy": "bal. accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "ece": "ECE",
}


def number(value: float | None, digits: int = 3) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def bracketed(low: float, high: float, digits: int = 2) -> str:
    """Write an interval: "[0.68, 0.75]"."""
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def abridged(low: float, high: float) -> str:
    """Write an interval where a table has no room: ".68-.75"."""
    return "-".join(f"{bound:.2f}".removeprefix("0") for bound in (low, high))


def with_interval(interval: Interval | None, digits: int = 2) -> str:
    """Write a value with its bounds, of so many digits: "0.716 [0.68, 0.75]"; alone where it has none."""
    if interval is None or interval.value is None:
        return ""
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return number(interval.value)
    return f"{number(interval.value)} {bracketed(interval.low, interval.high, digits)}"


def difference(interval: Interval | None) -> str:
    """Write a difference with its bounds: "+0.021 [-0.004, +0.046]"; alone where it has none."""
    if interval is None or interval.value is None:
        return ""
    if interval.low is None or interval.high is None:
        return f"{interval.value:+.3f}"
    return f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def p_value(value: float) -> str:
    return f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def signed(value: float) -> str:
    """Write a number with its sign, a true minus, and 3 significant digits: "+1.23"."""
    return _minus(f"{value:+.3g}")


def reading(value: float, *, percent: bool = False) -> str:
    """Write a reading: "2.58", or "26%"."""
    return _minus(f"{value:.0%}" if percent else f"{value:.2f}")


def reading_range(low: float, high: float, *, percent: bool = False) -> str:
    """Write a range of readings: "1.02–1.69", with "to" between them where one is negative."""
    between = "\u2013" if min(low, high) >= 0 else " to "
    return f"{reading(low, percent=percent)}{between}{reading(high, percent=percent)}"


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")
