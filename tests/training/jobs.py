"""What the tests of extraction run in processes of their own, some of them to be killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

import torch

from lrp4rag.example import Example, Label
from lrp4rag.reader import Reader, load_reader
from lrp4rag.training.extract import extract
from lrp4rag.training.extractor import Extractor
from lrp4rag.util import processes as module
from tests.tiny import bridge_example

PARTS = ("relevance", "segments", "prompt", "matrix-6x4")
TOO_LONG = bridge_example(passages=["word " * 600], id="too-long")
INTERRUPTED = 130


def responses(prompts: int, each: int = 2) -> list[Example]:
    """Labelled responses, `each` of one prompt after the other."""
    return [
        bridge_example(
            k,
            response=f"It was opened in {1900 + k}." + " Nobody knows." * j,
            labels=(Label(0, 2),) if j else (),
            generator=f"g{j}",
            id=f"bridge-{k}-{j}",
        )
        for k in range(prompts)
        for j in range(each)
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def whole_files(folder: Path) -> dict[str, bytes]:
    """Without what is being written."""
    return {name: content for name, content in contents(folder).items() if not name.endswith(".tmp")}


def open_reader(folder: str, cache: str) -> Reader:
    os.environ["LRP4RAG_CACHE"] = cache
    torch.set_num_threads(1)
    return load_reader(folder, device="cpu")


@dataclass(frozen=True)
class Load:
    """Loads a worker's reader, and leaves its process id in a folder; `fate` is what its work then meets."""

    folder: str
    cache: str
    pids: str
    fate: str = "work"

    def __call__(self, worker: int) -> Reader:
        (Path(self.pids) / f"{worker}.pid").write_text(str(os.getpid()))
        if self.fate != "work":
            Extractor.run = {"die": _die, "sleep": _sleep}[self.fate]
        return open_reader(self.folder, self.cache)


def _die(*_: object) -> dict[str, str]:
    os._exit(3)


def _sleep(*_: object) -> dict[str, str]:
    time.sleep(600)
    return {}


def run_extraction(load: Load, store: str, prompts: int, workers: int) -> None:
    """As `lrp4rag extract` runs it; workers are forked from a server that has imported everything."""
    module.START = "forkserver"
    forkserver._forkserver.ensure_running = lambda: None  # this process was forked from it
    os.cpu_count = lambda: 2
    rows, reader = [*responses(prompts), TOO_LONG], open_reader(load.folder, load.cache)
    # Tests started in the background of a shell inherit that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        extract(rows, reader, store, parts=PARTS, workers=workers, load=load)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
