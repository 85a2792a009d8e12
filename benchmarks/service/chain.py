"""How many records a second go into one chain in PostgreSQL, by the number of processes that write it."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import click

from benchmarks.command import Report, benchmark, count, listed, table
from benchmarks.service.client import quantiles
from benchmarks.service.postgres import database
from benchmarks.service.server import quick
from lrp4rag.guard.audit import AuditLog

STARTS_IN = 300
"""Seconds."""


def append(url: str, name: str, seconds: float, together: Any, took: Any) -> None:
    """Append to a log for so long, from when all writers are there, as a replica does."""
    times: list[float] = []
    with AuditLog.open(url) as log:
        together.wait(STARTS_IN)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            started = time.monotonic()
            log.append({"id": f"{name}-{len(times)}", "kind": "sentence", "action": "serve"})
            times.append(time.monotonic() - started)
    took.put(times)


def rate_of(url: str, writers: int, seconds: float) -> dict[str, Any]:
    """Appends a second of so many writers together, and how long each takes."""
    context = multiprocessing.get_context("spawn")
    took, together = context.Queue(), context.Barrier(writers)
    given = [(url, f"w{writers}-{k}", seconds, together, took) for k in range(writers)]
    running = [context.Process(target=append, args=one) for one in given]
    for one in running:
        one.start()
    times = [time for _ in running for time in took.get(timeout=STARTS_IN + seconds)]
    for one in running:
        one.join()
    return {"writers": writers, "appends_per_second": len(times) / seconds, **quantiles("append", times)}


@benchmark
@listed("--writers", click.INT, "1,2,4,8", "Processes that append at a time.")
@count("--seconds", 10, "In which each number of them appends.")
@quick(writers="1,2", seconds=2)
def main(writers: tuple[int, ...], seconds: int, quick: bool) -> Report:
    """Let several processes append to one audit log in PostgreSQL, each record on disk before the next: how
    many a second are they together, and is the chain whole?

    \b
    Examples:
      python -m benchmarks.service.chain --quick
    """
    with database() as url:
        rates = [rate_of(url, number, seconds) for number in writers]
        with AuditLog.open(url, create=False) as log:
            found = log.verify()
    rows = [
        (str(one["writers"]), f"{one['appends_per_second']:.0f}", f"{1000 * one['append_p95']:.1f} ms")
        for one in rates
    ]
    result = {"rates": rates, "entries": found.entries, "audit_problems": len(found.problems)}
    return result, table(("writers", "appends a second", "p95"), rows)


if __name__ == "__main__":
    main()
