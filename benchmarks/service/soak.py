"""Mixed traffic for a long time: does the server keep memory, descriptors or threads?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import click
import httpx
import numpy as np
from scipy import stats

from benchmarks import command
from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import TIMEOUT, Seen, ask, chat_body, examples, judge_body
from benchmarks.service.server import Server, quick, reader, recorded, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.example import Example

BLOCKS = 20
"""Whose medians the slope is of: samples that follow each other say little more than one."""
MIX = {"stream": 4, "judge": 4, "whole": 2, "vanish": 3, "invalid": 3, "batch": 1, "look": 1}
INVALID: list[Any] = [b"{", b"\xff", b"[]", b'{"messages": 1}', b" " * 3_000_000, b'{"question": "\\ud800"}']
SAMPLED = 0.1
"""Minutes from one sample to the next, at most; a short run has two hundred."""


async def one(client: httpx.AsyncClient, what: str, number: int, some: Sequence[Example]) -> None:
    """A client of this kind."""
    example = some[number]
    if what == "stream":
        await ask(client, number, example)
    elif what == "judge":
        await client.post("/v1/judge", json=judge_body(example))
    elif what == "whole":
        await client.post("/v1/chat/completions", json=chat_body(number, example))
    elif what == "batch":
        await client.post("/v1/judge/batch", json={"requests": [judge_body(example)] * 2})
    elif what == "invalid":
        route = "/v1/judge" if number % 2 else "/v1/chat/completions"
        await client.post(route, content=INVALID[number % len(INVALID)])
    elif what == "look":
        await client.get("/metrics")
        await client.get("/v1/decisions/none")
    elif what == "vanish":
        seen = Seen(number)
        task = asyncio.create_task(ask(client, number, example, seen))
        while not seen.chunks and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def traffic(
    server: Server, some: Sequence[Example], clients: int, minutes: float
) -> tuple[list[list[float]], Counter[str]]:
    """Samples of minutes and bytes (RSS), and what was asked for."""
    began, samples, done = time.monotonic(), list[list[float]](), Counter[str]()
    names, weights = list(MIX), list(MIX.values())

    def passed() -> float:
        return (time.monotonic() - began) / 60

    async def go_on(client: httpx.AsyncClient, random: Random) -> None:
        while passed() < minutes:
            (what,) = random.choices(names, weights)
            try:
                await one(client, what, random.randrange(len(some)), some)
                done[what] += 1
            except httpx.HTTPError:
                done["connection failed"] += 1

    async with httpx.AsyncClient(base_url=server.url, timeout=TIMEOUT) as client:
        tasks = [asyncio.create_task(go_on(client, Random(k))) for k in range(clients)]
        while passed() < minutes:
            samples.append([passed(), float(server.process.memory_info().rss)])
            await asyncio.sleep(60 * min(SAMPLED, minutes / 200))
        await asyncio.gather(*tasks)
    return samples, done


def slope(samples: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """MB an hour with its 95% interval, by the medians of blocks."""
    blocks = np.array_split(np.array(samples), min(BLOCKS, len(samples)))
    medians = np.array([np.median(block, axis=0) for block in blocks])
    fit = stats.linregress(medians[:, 0] / 60, medians[:, 1] / 1e6)
    half = float(stats.t.ppf(0.975, len(medians) - 2) * fit.stderr)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half


def held(server: Server) -> tuple[int, int]:
    """Open descriptors and threads of a server without clients."""
    server.wait_until_idle()
    time.sleep(1)
    return server.process.num_fds(), server.process.num_threads()


@benchmark
@click.option("--minutes", default=60.0, show_default=True, help="Of traffic.")
@click.option(
    "--warm-up", default=10.0, show_default=True, help="The first minutes, that nothing is told of."
)
@count("--clients", 3, "At a time.")
@click.option("--pause", default=0.02, show_default=True, help="Seconds of the upstream for a word.")
@command.dtype
@reader("default")
@quick(minutes=0.1, warm_up=0.03, pause=0.0, reader="tiny")
def main(
    minutes: float, warm_up: float, clients: int, pause: float, dtype: str, reader: str, quick: bool
) -> Report:
    """Streams, judgements, batches, clients that vanish and requests that are invalid, all at once: memory of
    the server over time, and its open descriptors and threads after the warm-up and at the end.

    \b
    Examples:
      python -m benchmarks.service.soak --quick
      python -m benchmarks.service.soak --minutes 60
    """
    some = examples(60)
    with (
        tempfile.TemporaryDirectory() as name,
        Upstream(Writer([str(x.response) for x in some], pause)) as up,
    ):
        folder = Path(name)
        with started(folder, reader=reader, dtype=dtype, upstream=up.url) as server:
            early, _ = asyncio.run(traffic(server, some, clients, warm_up))
            before = held(server)
            late, done = asyncio.run(traffic(server, some, clients, minutes - warm_up))
            after = held(server)
        records, problems = recorded(folder)
    middle, low, high = slope(late)
    samples = early + [[minute + warm_up, size] for minute, size in late]
    result: dict[str, Any] = {
        "slope_mb_per_hour": middle,
        "slope_low": low,
        "slope_high": high,
        "bytes_after_warm_up": late[0][1],
        "bytes_at_end": late[-1][1],
        "descriptors": [before[0], after[0]],
        "server_threads": [before[1], after[1]],
        "requests": dict(done),
        "decisions": len(records),
        "audit_problems": len(problems),
        "samples": [[round(minute, 3), size] for minute, size in samples],
    }
    return result, rows_of(result)


if __name__ == "__main__":
    main()
