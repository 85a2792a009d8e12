"""A progress bar with an estimate on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from lrp4rag.terminal import open_console, say

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 30.0


def track(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """Yield the items, showing how many are done and how long the rest will take; a worker is silent."""
    if multiprocessing.current_process().name != "MainProcess":
        yield from items
    elif sys.stderr.isatty():
        yield from _bar(items, total, label)
    else:
        yield from _lines(items, total, label)


def _bar(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=open_console(stderr=True)) as progress:
        yield from progress.track(items, total=total, description=label)


def _lines(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    started = told = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - told >= SECONDS_BETWEEN_LINES and done < total:
            told = now
            left = (now - started) / done * (total - done) / 60
            say(f"{label}: {done}/{total}, about {left:.0f} min left", err=True)
