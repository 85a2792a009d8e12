"""`serve`: what a server's process runs, and the faults that can be put into it.

It is `lrp4rag serve` itself. The tiny reader has random weights: for what does not depend on who reads.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from random import Random
from threading import RLock
from time import sleep
from typing import Any

import torch
from sqlalchemy import Connection, Engine, event
from tqdm import tqdm

from lrp4rag.cli import main
from lrp4rag.judge import Detector
from lrp4rag.reader import Reader, load_reader

WINDOW = 8192
"""Tokens of the tiny reader."""
READER, READ_ONLY = "reader", "read-only"
"""What may stand in the file `fault` of a server's folder: half of the reader's passes raise; the database
cannot be written."""


def serve(folder: Path, reader: str, slow: float) -> None:
    """Run the server of the folder's settings until it is told to end; all that it prints is in `log`.

    Each pass of the tiny reader takes `slow` seconds more.
    """
    log = os.open(folder / "log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    if reader == "tiny":
        os.environ["LRP4RAG_CACHE"] = str(folder / "cache")
        torch.set_num_threads(1)

        def load(*_: Any, dtype: str = "float32", **__: Any) -> Detector:
            return tiny_detector(folder, dtype, slow)

        Detector.load = load  # type: ignore[method-assign]
    _let_be_read_only(folder / "fault")
    tqdm.set_lock(RLock())  # its own would be left behind by a server that is killed
    main(["serve", "--config", str(folder / "settings.yaml")])


def tiny_detector(folder: Path, dtype: str, slow: float) -> Detector:
    # The tests' own; they are no part of what is type-checked.
    save, plain = import_module("tests.tiny"), import_module("tests.cli.plain_detector")
    if not (folder / "reader").exists():
        save.save_tiny_reader(folder / "reader", window=WINDOW)
    reader = load_reader(str(folder / "reader"), device="cpu", dtype=dtype)
    _let_fail(reader, folder / "fault", slow)
    return Detector(plain.plain_detector(reader), reader, prompt_bytes=2**24)


def _let_fail(reader: Reader, fault: Path, slow: float) -> None:
    """Passes take longer, and raise what they read where the fault says so."""
    chance = Random(0)

    def disturb(_: Any, given: tuple[torch.Tensor, ...]) -> None:
        sleep(slow)
        if _stands(fault, READER) and chance.random() < 0.5:
            raise RuntimeError(reader.tokenizer.decode(given[0].flatten().tolist()))

    reader.model.get_input_embeddings().register_forward_pre_hook(disturb)


def _let_be_read_only(fault: Path) -> None:
    @event.listens_for(Engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA query_only={_stands(fault, READ_ONLY):d}")


def _stands(fault: Path, word: str) -> bool:
    return fault.exists() and fault.read_text() == word
