"""kill -9 at random moments under load: is what a client was told in the log, and does the server go on?"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import httpx

from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import Seen, ask, examples, judge_body, with_client
from benchmarks.service.server import Server, quick, reader, recorded, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.example import Example


def told_until_killed(server: Server, some: list[Example], clients: int, seconds: float) -> set[str]:
    """The ids of all decisions that clients were told, by streams and by judgements, before the server was
    killed, so many seconds after the first of them."""
    told: set[str] = set()

    async def stream(client: httpx.AsyncClient, number: int) -> None:
        seen = Seen(number)
        try:
            await ask(client, number, some[number], seen)
        finally:  # also what came before the connection was lost
            told.update(seen.ids)

    async def judge(client: httpx.AsyncClient, number: int) -> None:
        reply = await client.post("/v1/judge", json=judge_body(some[number]))
        if reply.status_code == 200:
            told.add(reply.json()["decision"]["id"])

    async def one(client: httpx.AsyncClient, random: Random) -> None:
        while True:
            number = random.randrange(len(some))
            try:
                await random.choice([stream, judge])(client, number)
            except httpx.HTTPError:
                return

    async def work(client: httpx.AsyncClient) -> None:
        tasks = [asyncio.create_task(one(client, Random(k))) for k in range(clients)]
        while not told and not all(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(server.kill)
        await asyncio.wait_for(asyncio.gather(*tasks), 60)

    with_client(server.url, work)
    return told


@benchmark
@count("--kills", 30, "Of the server, each at a random moment.")
@count("--clients", 4, "That stream and judge meanwhile.")
@reader("tiny")
@quick(kills=2)
def main(kills: int, clients: int, reader: str, quick: bool) -> Report:
    """Kill the server again and again while clients use it, and start it again on the same log: is every
    decision that a client was told in the chain, is the chain whole, does the server judge again?

    \b
    Examples:
      python -m benchmarks.service.kill --quick
      python -m benchmarks.service.kill --kills 30
    """
    random, some = Random(0), examples(20)
    told: set[str] = set()
    missing = restarted = 0
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Upstream(Writer([str(one.response) for one in some], 0.005)) as upstream:
            for _ in range(kills):
                with started(folder, reader=reader, upstream=upstream.url) as server:
                    moment = random.uniform(0.0, 3.0 if reader == "tiny" else 30.0)
                    told |= told_until_killed(server, some, clients, moment)
                records, found = recorded(folder)
                missing += len(told - records.keys())
                problems += found
                with started(folder, reader=reader) as server:
                    body = judge_body(some[0])
                    restarted += httpx.post(f"{server.url}/v1/judge", json=body, timeout=60).is_success
    result: dict[str, Any] = {
        "kills": kills,
        "decisions_told": len(told),
        "decisions_recorded": len(records),
        "decisions_missing": missing,
        "audit_problems": len(problems),
        "problems": problems[:20],
        "started_again": restarted,
    }
    return result, rows_of(result)


if __name__ == "__main__":
    main()
