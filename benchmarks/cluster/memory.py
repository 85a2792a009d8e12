"""Memory of processes while something runs, looked at again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil


@dataclass
class Watched:
    """Bytes, by seconds since the beginning: what the process itself holds, and all that began below it,
    which share pages: each page counts once."""

    seconds: list[float] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    tree: list[int] = field(default_factory=list)


@contextmanager
def watched(every: float = 1.0, *, tree: bool = False) -> Iterator[Watched]:
    """Watch this process, and with `tree` those below it, until the end."""
    found, ended, started = Watched(), threading.Event(), time.monotonic()

    def look() -> None:
        here = psutil.Process()
        while not ended.wait(every):
            found.seconds.append(time.monotonic() - started)
            found.own.append(here.memory_full_info().uss)
            found.tree.append(sum(map(_share, [here, *here.children(recursive=True)])) if tree else 0)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _share(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0
