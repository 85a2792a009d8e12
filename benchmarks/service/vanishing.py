"""Clients that go away in the middle: how soon is the reader free for others?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import click
import httpx

from benchmarks import command
from benchmarks.command import Report, benchmark, count
from benchmarks.service.capacity import seconds_of
from benchmarks.service.client import Seen, ask, examples, judge_body, quantiles, with_client
from benchmarks.service.server import Server, quick, reader, recorded, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.example import Example


def leave(server: Server, some: list[Example], numbers: range, wait: float) -> int:
    """Stream these answers at once, and leave all of them `wait` seconds after the first text came. How many
    had begun, and not ended."""

    async def work(client: httpx.AsyncClient) -> int:
        every = [Seen(number) for number in numbers]
        tasks = [asyncio.create_task(ask(client, one.number, some[one.number], one)) for one in every]
        while not any(one.chunks for one in every) and not all(task.done() for task in tasks):
            await asyncio.sleep(0.005)
        await asyncio.sleep(wait)
        left = sum(bool(one.chunks) and not task.done() for one, task in zip(every, tasks, strict=True))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return left

    return with_client(server.url, work)


@benchmark
@count("--rounds", 10, "In which all clients leave at once.")
@count("--clients", 10, "Of a round.")
@click.option("--pause", default=0.05, show_default=True, help="Seconds of the upstream for a word.")
@command.dtype
@reader("default")
@quick(rounds=2, clients=5, reader="tiny")
def main(rounds: int, clients: int, pause: float, dtype: str, reader: str, quick: bool) -> Report:
    """Clients that stream and go away all at once: seconds until no job of theirs is left, and seconds that a
    new request then takes, beside those of the same request on an idle server.

    \b
    Examples:
      python -m benchmarks.service.vanishing --quick
      python -m benchmarks.service.vanishing --rounds 10 --clients 10
    """
    random, some = Random(0), examples(rounds * clients)
    new = [judge_body(some[0])]
    free, later, left = list[float](), list[float](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            Upstream(Writer([str(one.response) for one in some], pause)) as upstream,
            started(folder, reader=reader, upstream=upstream.url, dtype=dtype) as server,
        ):
            seconds_of(server.url, new)  # the first pass is slower
            idle = seconds_of(server.url, 3 * new)
            for k in range(rounds):
                left += leave(server, some, range(k * clients, (k + 1) * clients), random.random())
                gone = time.monotonic()
                server.wait_until_idle()
                free.append(time.monotonic() - gone)
                later += seconds_of(server.url, new)
        problems = recorded(folder)[1]
    result: dict[str, Any] = {
        "clients_gone": rounds * clients,
        "in_the_middle": left,
        **quantiles("free", free),
        **quantiles("new_request", later),
        **quantiles("idle_request", idle),
        "audit_problems": len(problems),
    }
    return result, rows_of(result)


if __name__ == "__main__":
    main()
