"""`started`: a server in a process of its own, to be asked, disturbed and killed."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import click
import httpx
import psutil

from benchmarks.command import Decorator
from benchmarks.service.process import serve
from lrp4rag.guard.audit import AuditLog
from lrp4rag.util.errors import LRP4RAGError

STARTS_IN, ENDS_IN = 120, 60
"""Seconds."""
CONTEXT = multiprocessing.get_context("forkserver")  # what is imported once need not be for each server
CONTEXT.set_forkserver_preload(["benchmarks.service.process", "lrp4rag.guard.service.app"])


def reader(default: str) -> Decorator:
    return click.option(
        "--reader", default=default, show_default=True, type=click.Choice(["default", "tiny"]),
        help="The bundled detector's, or one of random weights that costs next to nothing.",
    )  # fmt: skip


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
    """A server that runs. Its `folder` holds what it prints (`log`), its settings and its audit log."""

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

    def waiting(self) -> int:
        """Jobs that wait for the reader, and the one that runs."""
        (found,) = re.findall(r"^lrp4rag_waiting (\S+)$", self.metrics(), re.MULTILINE)
        return int(float(found))

    def metrics(self) -> str:
        return httpx.get(f"{self.url}/metrics", timeout=60).raise_for_status().text

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
    """A server by these settings above those of a benchmark. One that was not killed ends as by SIGTERM."""
    given = {
        "port": 0, "open": True, "audit": audit_of(folder), "per_minute": 10**9, "most_waiting": 1000,
        "most_answers": 1000,
        **settings,
    }  # fmt: skip
    (folder / "settings.yaml").write_text(json.dumps(given))
    (folder / "log").write_text("")
    running = CONTEXT.Process(target=serve, args=(folder, reader, slow), daemon=True)
    running.start()
    try:
        yield Server(_address(running, folder / "log"), folder, running)
    finally:
        running.terminate()
        running.join(ENDS_IN)
        running.kill()


def _address(running: ForkServerProcess, log: Path) -> str:
    started = time.monotonic()
    while time.monotonic() - started < STARTS_IN and running.is_alive():
        if (found := re.search(r"^(http://\S+)", log.read_text(errors="replace"), re.MULTILINE)) is not None:
            return found.group(1)
        time.sleep(0.05)
    raise LRP4RAGError(f"the server did not start: {log.read_text(errors='replace')[-500:]}")


def audit_of(folder: Path) -> str:
    return f"sqlite:///{folder}/audit.db"


def recorded(folder: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The records of a folder's audit log by their ids, and what `verify` finds."""
    with AuditLog.open(audit_of(folder), create=False) as log:
        problems = [str(one) for one in log.verify().problems]
        return {entry.id: entry.record for entry in log.entries()}, problems
