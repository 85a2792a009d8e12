"""What workers of a cluster do in tests: they open the tiny reader, take their time, or die."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.guard.cluster.extraction import Extracting, configuration_of, extract_files
from lrp4rag.guard.cluster.groups import Numbered
from lrp4rag.guard.cluster.session import joined
from lrp4rag.guard.cluster.work import Workers
from lrp4rag.reader import Reader
from lrp4rag.training.extract import Extraction
from lrp4rag.training.extractor import Extractor, Failures, Group
from tests.training.jobs import PARTS, open_reader


@dataclass(frozen=True)
class Opening:
    """Opens a worker's reader, and leaves a file named after the process for each group that it begins, for
    which it takes `pause` seconds more."""

    folder: str
    cache: str
    begun: str
    pause: float = 0.0

    def __call__(self, worker: int = 0) -> Reader:
        run, pause, begun = Extractor.run, self.pause, Path(self.begun)

        def slowly(self: Extractor, group: Group, parts: Sequence[str]) -> Failures:
            (begun / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(pause)
            return run(self, group, parts)

        if pause and run.__name__ == "run":
            Extractor.run = slowly
        return open_reader(self.folder, self.cache)


def extracted(data: str, store: str, opening: Opening, address: str, count: int = 2) -> Extraction:
    workers = Workers(count)

    def plan(opened: Any) -> Extracting:
        return Extracting(opening, opened, PARTS, None, 1)

    at_once = Opening(opening.folder, opening.cache, opening.begun)
    with joined(address):
        return extract_files(
            [data],
            store,
            plan,
            lambda: configuration_of(at_once, "attnlrp", "error", PARTS, workers),
            workers,
        )


class Deadly:
    """A worker that one response kills."""

    def __init__(self, deadly: str) -> None:
        self._deadly = deadly

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        for row, _, example in numbered:
            if example.id == self._deadly:
                os._exit(3)
            yield {"row": row}


class Failing:
    """A worker that may not do what it does."""

    def __init__(self, message: str) -> None:
        self._message = message

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        raise PermissionError(self._message)


if __name__ == "__main__":  # a run that is to be killed
    data, store, address, *opening = sys.argv[1:]
    extracted(data, store, Opening(*opening[:3], float(opening[3])), address)
