"""Start `lrp4rag serve` in a process of its own, to be asked, disturbed and killed.

The tiny reader has random weights: for what does not depend on who reads. What stands in the file `fault` of
a server's folder disturbs it: `READER` lets half of the reader's passes raise, `READ_ONLY` its database be
read-only.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any

import click
import httpx
import psutil
import torch
from sqlalchemy import Connection, Engine, event
from tqdm import tqdm

from benchmarks.command import Decorator
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.cli import main
from lrp4rag.guard.audit import AuditLog
from lrp4rag.judge import Detector
from lrp4rag.reader import Reader, load_reader
from lrp4rag.util.errors import LRP4RAGError

STARTS_IN, ENDS_IN = 120, 60
"""Seconds."""
WINDOW = 8192
"""Tokens of the tiny reader."""
READER, READ_ONLY = "reader", "read-only"
CONTEXT = multiprocessing.get_context("forkserver")  # what is imported once need not be for each server
CONTEXT.set_forkserver_preload(["benchmarks.service.server", "lrp4rag.guard.service.app"])


def reader(default: str) -> Decorator:
    return click.option(
        "--reader", default=default, show_default=True, type=click.Choice(["default", "tiny"]),
        help="The bundled detector's, or one of random weights that costs next to nothing.",
    )  # fmt: skip


pause = click.option("--pause", default=0.05, show_default=True, help="Seconds of the upstream for a word.")


def quick(**defaults: Any) -> Decorator:
    """An option by which the others have these defaults: a small run, that shows that it works at all."""

    def set_defaults(ctx: click.Context, _: click.Parameter, given: bool) -> bool:
        if given:
            ctx.default_map = defaults
        return given

    return click.option(
        "--quick", is_flag=True, is_eager=True, callback=set_defaults,
        help="A small run: " + ", ".join(f"{name} {value}" for name, value in defaults.items()) + ".",
    )  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A running server. Its `folder` holds what it prints (`log`), its settings and its audit log."""

    url: str
    folder: Path
    running: ForkServerProcess

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.running.pid)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def kill(self) -> None:
        """As by kill -9."""
        self.running.kill()
        self.running.join(ENDS_IN)

    def metrics(self) -> str:
        return httpx.get(f"{self.url}/metrics", timeout=60).raise_for_status().text

    def waiting(self) -> int:
        """Jobs that wait for the reader, and the one that runs."""
        (found,) = re.findall(r"^lrp4rag_waiting (\S+)$", self.metrics(), re.MULTILINE)
        return int(float(found))

    def wait_until_idle(self, seconds: float = 60.0) -> float:
        """Seconds until no job is left; raises `LRP4RAGError` where some always are."""
        started = time.monotonic()
        while self.waiting():
            if time.monotonic() - started > seconds:
                raise LRP4RAGError(f"jobs are left after {seconds:g} s")
            time.sleep(0.01)
        return time.monotonic() - started


@contextmanager
def started(folder: Path, *, reader: str = "tiny", slow: float = 0.0, **settings: Any) -> Iterator[Server]:
    """A server by these settings above those of a benchmark. One that was not killed ends as by SIGTERM.

    Each pass of the tiny reader takes `slow` seconds more.
    """
    given = {
        "port": 0, "open": True, "audit": audit_of(folder), "per_minute": 10**9, "most_waiting": 1000,
        "most_answers": 1000, **settings,
    }  # fmt: skip
    (folder / "settings.yaml").write_text(json.dumps(given))
    (folder / "log").write_text("")
    running = CONTEXT.Process(target=_serve, args=(folder, reader, slow), daemon=True)
    running.start()
    try:
        yield Server(_address(running, folder / "log"), folder, running)
    finally:
        running.terminate()
        running.join(ENDS_IN)
        running.kill()


def _address(running: ForkServerProcess, log: Path) -> str:
    """The address that a server prints; raises `LRP4RAGError` where it does not start."""
    until = time.monotonic() + STARTS_IN
    while time.monotonic() < until and running.is_alive():
        if (found := re.search(r"^(http://\S+)", log.read_text(errors="replace"), re.MULTILINE)) is not None:
            return found.group(1)
        time.sleep(0.05)
    raise LRP4RAGError(f"the server did not start: {log.read_text(errors='replace')[-500:]}")


@dataclass
class Guarded:
    """A server before an upstream; once it has ended, the records of its audit log by their ids, and the
    problems that `verify` finds."""

    server: Server
    upstream: Upstream
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url


@contextmanager
def guarded(answers: Sequence[str], pause: float = 0.0, **settings: Any) -> Iterator[Guarded]:
    """A server with a folder of its own, before an upstream that writes the answers."""
    with tempfile.TemporaryDirectory() as name, Upstream(Writer(list(answers), pause)) as upstream:
        with started(Path(name), upstream=upstream.url, **settings) as server:
            run = Guarded(server, upstream)
            yield run
        run.records, run.problems = recorded(Path(name))


def audit_of(folder: Path) -> str:
    return f"sqlite:///{folder}/audit.db"


def recorded(folder: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The records of a folder's audit log by their ids, and the problems that `verify` finds."""
    with AuditLog.open(audit_of(folder), create=False) as log:
        problems = [str(one) for one in log.verify().problems]
        return {entry.id: entry.record for entry in log.entries()}, problems


# In the server's process


def _serve(folder: Path, reader: str, slow: float) -> None:
    """Run `lrp4rag serve` until it is told to end; all that it prints is in `log`."""
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
    """Passes take longer, and raise the text that they read where the fault says so."""
    chance = Random(0)

    def disturb(_: Any, given: tuple[torch.Tensor, ...]) -> None:
        time.sleep(slow)
        if _stands(fault, READER) and chance.random() < 0.5:
            raise RuntimeError(reader.tokenizer.decode(given[0].flatten().tolist()))

    reader.model.get_input_embeddings().register_forward_pre_hook(disturb)


def _let_be_read_only(fault: Path) -> None:
    @event.listens_for(Engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA query_only={_stands(fault, READ_ONLY):d}")


def _stands(fault: Path, word: str) -> bool:
    return fault.exists() and fault.read_text() == word
