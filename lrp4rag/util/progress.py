"""A progress bar with an estimate on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

from lrp4rag.util.terminal import say

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 30.0


def track(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """Yield the items, showing how many are done and how long the rest will take; a worker is silent."""
    if multiprocessing.current_process().name != "MainProcess":
        yield from items
    elif sys.stderr.isatty():
        yield from tqdm(items, desc=label, total=total, file=sys.stderr, dynamic_ncols=True)
    else:
        yield from _lines(items, total, label)


def _lines(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    started = shown = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - shown >= SECONDS_BETWEEN_LINES and done < total:
            shown = now
            left = (now - started) / done * (total - done) / 60
            say(f"{label}: {done}/{total}, about {left:.0f} min left", err=True)
