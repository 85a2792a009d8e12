"""More requests than can be judged: are they refused at once, and the others served in time?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import click
import httpx

from benchmarks import command
from benchmarks.command import Report, benchmark, count
from benchmarks.service.capacity import seconds_of
from benchmarks.service.client import examples, judge_body, quantiles, with_client
from benchmarks.service.server import quick, reader, recorded, started
from benchmarks.service.table import rows_of

Reply = tuple[int, float]
"""Status (0: the connection failed) and seconds."""
MEASURED = 12
"""Answers by which the capacity is told."""


def arrivals(rate: float, seconds: float) -> list[float]:
    """Moments at which requests are sent, whether or not those before were answered: a Poisson process."""
    random, at, found = Random(0), 0.0, list[float]()
    while (at := at + random.expovariate(rate)) < seconds:
        found.append(at)
    return found


def offer(url: str, bodies: list[dict[str, Any]], moments: list[float]) -> list[Reply]:
    """One request at each moment."""

    async def work(client: httpx.AsyncClient) -> list[Reply]:
        began = time.monotonic()

        async def one(number: int, moment: float) -> Reply:
            await asyncio.sleep(began + moment - time.monotonic())
            sent = time.monotonic()
            try:
                reply = await client.post("/v1/judge", json=bodies[number % len(bodies)])
            except httpx.HTTPError:
                return 0, time.monotonic() - sent
            return reply.status_code, time.monotonic() - sent

        return await asyncio.gather(*(one(k, moment) for k, moment in enumerate(moments)))

    return with_client(url, work)


@benchmark
@click.option("--times", default=5.0, show_default=True, help="What is offered, over the capacity.")
@click.option("--seconds", default=300.0, show_default=True, help="For which it is offered.")
@click.option("--deadline", default=30.0, show_default=True, help="The server's setting `seconds`.")
@count("--most-waiting", 32, "The server's setting.")
@command.dtype
@reader("default")
@click.option("--slow", default=0.0, show_default=True, help="Seconds more of the tiny reader's passes.")
@quick(seconds=4.0, deadline=3.0, reader="tiny", slow=0.05)
def main(
    times: float,
    seconds: float,
    deadline: float,
    most_waiting: int,
    dtype: str,
    reader: str,
    slow: float,
    quick: bool,
) -> Report:
    """Offer several times the capacity, by a Poisson process that waits for no reply: what is refused and how
    fast, and whether what was accepted is judged within its deadline.

    \b
    Examples:
      python -m benchmarks.service.overload --quick
      python -m benchmarks.service.overload --times 5 --seconds 300
    """
    bodies = [judge_body(one) for one in examples(550)]  # few of them again: prompts stay read
    settings = {"seconds": deadline, "most_waiting": most_waiting, "dtype": dtype}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(folder, reader=reader, slow=slow, **settings) as server:
            alone = seconds_of(server.url, bodies[: MEASURED + 1])[1:]  # the first pass is slower
            rate = times * len(alone) / sum(alone)
            replies = offer(server.url, bodies[MEASURED + 1 :], arrivals(rate, seconds))
        problems = recorded(folder)[1]
    accepted = [took for status, took in replies if status == 200]
    refused = [took for status, took in replies if status == 429]
    result: dict[str, Any] = {
        "capacity_per_minute": 60 / (sum(alone) / len(alone)),
        "offered": len(replies),
        "offered_per_minute": 60 * rate,
        "statuses": {
            str(status): number for status, number in sorted(Counter(s for s, _ in replies).items())
        },
        "server_errors": sum(status >= 500 or status == 0 for status, _ in replies),
        "late": sum(took > deadline for took in accepted),
        "accepted_per_minute": 60 * len(accepted) / seconds,
        **quantiles("refused", refused),
        **quantiles("accepted", accepted),
        "audit_problems": len(problems),
    }
    return result, rows_of(result)


if __name__ == "__main__":
    main()
