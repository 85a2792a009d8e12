"""Numbers, tables and names of files, as the pages of results write them."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import pandas as pd

from lrp4rag.classifiers.card import Interval
from lrp4rag.report.numbers import bracketed, percent, with_interval
from lrp4rag.report.templates import Markdown, text

Verdict = Literal["holds", "does not hold", "cannot be told"]


def verdict(interval: Interval, null: float = 0.0) -> Verdict:
    """Judge a claim that a value exceeds `null`, by its interval alone."""
    if interval.low is not None and interval.low > null:
        return "holds"
    if interval.high is not None and interval.high < null:
        return "does not hold"
    return "cannot be told"


# What `slug` leaves as it is; what ends like one of its hashes is none of these.
_FILE_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_HASHED = re.compile(r"-[0-9a-f]{8}$")


def percent_interval(interval: Interval | None) -> str:
    """66.4 % [63.1, 69.5]"""
    if interval is None or interval.value is None or interval.low is None or interval.high is None:
        return percent(interval.value if interval else None)
    return f"{percent(interval.value)} {bracketed(100 * interval.low, 100 * interval.high, 1)}"


def stacked(interval: Interval | None) -> str:
    """0.716 over [0.68, 0.75] in the next line: a table of eighty characters has room for four."""
    return with_interval(interval).replace(" [", "\n[") or "-"


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
