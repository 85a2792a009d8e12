"""What workers of a cluster do in tests: they open the tiny reader, take their time, or die."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.data import load_examples
from lrp4rag.guard.cluster.extraction import Plan, extract_on_cluster
from lrp4rag.guard.cluster.workers import Rows, Workers, joined
from lrp4rag.reader import Reader
from lrp4rag.training.extract import Extraction
from lrp4rag.training.extractor import Extractor, Failures, Group
from tests.cli.plain_detector import plain_detector
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

    def pair(self) -> tuple[Any, Reader]:
        """The reader and a detector for it."""
        reader = self()
        return plain_detector(reader), reader


def extracted(data: str, store: str, opening: Opening, address: str, count: int = 2) -> Extraction:
    with joined(address):
        plan = Plan(opening, "attnlrp", "error", PARTS)
        return extract_on_cluster(load_examples(data), Path(store), plan, Workers(count))


class Failing:
    """A worker that raises where a response has this id, or dies."""

    def __init__(self, id: str, *, dies: bool = False) -> None:
        self._id, self._dies = id, dies

    def run(self, group: Group) -> Rows:
        if any(example.id == self._id for example in group.examples):
            if self._dies:
                os._exit(3)
            raise PermissionError("not for you")
        return [{} for _ in group.examples]


if __name__ == "__main__":  # a run that is to be killed
    data, store, address, *opening = sys.argv[1:]
    extracted(data, store, Opening(*opening[:3], float(opening[3])), address)
