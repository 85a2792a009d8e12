"""Numbers as every report writes them: values, intervals, percents, p-values, and the names of metrics."""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Literal

from lrp4rag.report.markdown import Markdown, text

if TYPE_CHECKING:
    import pandas as pd

    from lrp4rag.classifiers.card import Interval

Verdict = Literal["holds", "does not hold", "cannot be told"]
METRICS = {
    "auroc": "AUROC",
    "accuracy": "accuracy",
    "balanced_accuracy": "bal. accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "ece": "ECE",
}


def verdict(interval: Interval, null: float = 0.0) -> Verdict:
    """Judge a claim that a value exceeds `null`, by its interval alone."""
    if interval.low is not None and interval.low > null:
        return "holds"
    if interval.high is not None and interval.high < null:
        return "does not hold"
    return "cannot be told"


def number(value: float | None, digits: int = 3) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def bracketed(low: float, high: float, digits: int = 2) -> str:
    """[0.68, 0.75]"""
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def abridged(low: float, high: float) -> str:
    """.68-.75, for tables that have no room."""
    return "-".join(f"{bound:.2f}".removeprefix("0") for bound in (low, high))


def with_interval(interval: Interval | None, digits: int = 2) -> str:
    """0.716 [0.68, 0.75], or with other digits of the bounds; without these where there are none."""
    if interval is None or interval.value is None:
        return ""
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return number(interval.value)
    return f"{number(interval.value)} {bracketed(interval.low, interval.high, digits)}"


def percent_interval(interval: Interval | None) -> str:
    """66.4 % [63.1, 69.5]"""
    if interval is None or interval.value is None or interval.low is None or interval.high is None:
        return percent(interval.value if interval else None)
    return f"{percent(interval.value)} {bracketed(100 * interval.low, 100 * interval.high, 1)}"


def difference(interval: Interval | None) -> str:
    """+0.021 [-0.004, +0.046]"""
    if interval is None or interval.value is None:
        return ""
    if interval.low is None or interval.high is None:
        return f"{interval.value:+.3f}"
    return f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def stacked(interval: Interval | None) -> str:
    """0.716 over [0.68, 0.75] in the next line: a table of eighty characters has room for four."""
    return with_interval(interval).replace(" [", "\n[") or "-"


def p_value(value: float) -> str:
    return f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def signed(value: float) -> str:
    """+1.23, with 3 significant digits and a minus sign."""
    return _minus(f"{value:+.3g}")


def reading(value: float, *, percent: bool = False) -> str:
    """2.58, or 26%."""
    return _minus(f"{value:.0%}" if percent else f"{value:.2f}")


def reading_range(low: float, high: float, *, percent: bool = False) -> str:
    """1.02–1.69; "to" stands between them where one is negative."""
    between = "\u2013" if min(low, high) >= 0 else " to "
    return f"{reading(low, percent=percent)}{between}{reading(high, percent=percent)}"


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


# What `slug` leaves as it is; what ends like one of its hashes is none of these.
_FILE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_HASHED = re.compile(r"-[0-9a-f]{8}$")


def slug(name: str) -> str:
    """A generator's name as a part of a file's: other names give other slugs, none has a folder in it, and
    none is empty or long. Most names stay as they are; others get a hash."""
    if _FILE_NAME.fullmatch(name) and ".." not in name and not _HASHED.search(name):
        return name
    shown = re.sub(r"[^A-Za-z0-9_]+", "-", name[:40]).strip("-") or "name"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown}-{digest[:8]}"


def markdown(table: pd.DataFrame) -> Markdown:
    """Render a table of words. What is in a cell stays in it; `Markdown` must be in columns of objects, for
    pandas makes plain strings of it in others."""
    lines: list[list[str]] = [[text(name) for name in table.columns], ["---"] * table.shape[1]]
    lines += [[text(item) for item in row] for row in table.itertuples(index=False)]
    return Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
