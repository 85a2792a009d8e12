"""Load on a server: streams, its capacity, more than that, and mixed traffic for a long time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import click
import httpx
import numpy as np
from scipy import stats

from benchmarks import command
from benchmarks.command import Result, benchmark, count, listed
from benchmarks.service.client import (
    TIMEOUT,
    Seen,
    ask,
    ask_all,
    chat_body,
    examples,
    judge_body,
    quantiles,
    responses,
    seconds_of,
    with_client,
)
from benchmarks.service.server import Server, guarded, pause, quick, reader
from benchmarks.service.streams import POLICY, TEXTS, crossed, held, leaked
from lrp4rag.example import Example
from lrp4rag.guard.policy import ACTIONS, Policy
from lrp4rag.guard.policy.policy import Texts
from lrp4rag.guard.redteam import load_cases
from lrp4rag.guard.redteam.cases import ATTACKS

MEASURED = 12
"""Answers that the capacity is measured by, before more is offered."""
BLOCKS = 20
"""Whose medians the slope of memory is of: samples that follow each other say little more than one."""
SAMPLED = 0.1
"""Minutes from one sample of memory to the next, at most; a short run has two hundred."""
MIX = {"stream": 4, "judge": 4, "whole": 2, "vanish": 3, "invalid": 3, "batch": 1, "look": 1}
INVALID: list[Any] = [b"{", b"\xff", b"[]", b'{"messages": 1}', b" " * 3_000_000, b'{"question": "\\ud800"}']


@benchmark
@count("--answers", 100, "Streams.")
@count("--clients", 1, "At a time.")
@click.option(
    "--attacks", is_flag=True, help="Stream the answers of the red team's attacks, all of them once."
)
@pause
@command.dtype
@reader("default")
@quick(answers=6, clients=3, pause=0.002, reader="tiny")
def streams(
    answers: int, clients: int, attacks: bool, pause: float, dtype: str, reader: str, quick: bool
) -> Result:
    """Streams through the guardrail: text that left unjudged, was lost or went to another client;
    seconds that sentences are held.

    \b
    Examples:
      python -m benchmarks.service streams --quick
      python -m benchmarks.service streams --answers 500 --clients 4 --dtype bfloat16
      python -m benchmarks.service streams --attacks
    """
    cases = [one.example() for one in load_cases(kinds=[*ATTACKS])] if attacks else examples(answers)
    texts = responses(cases)
    with guarded(texts, pause, reader=reader, dtype=dtype, policy=POLICY) as run:
        ask_all(run.url, cases[:1], 1)  # the first pass is slower
        began = time.monotonic()
        every = ask_all(run.url, cases, clients)
        seconds, memory = time.monotonic() - began, run.server.process.memory_info().rss
    lost = [leaked(seen, texts[seen.number], run.records) for seen in every]
    sent = run.upstream.writer.sent
    holds = [
        hold
        for seen in every
        for hold in held(seen, texts[seen.number], sent.get(seen.number, []), run.records)
    ]
    actions = Counter(one["action"] for one in run.records.values() if one["kind"] == "sentence")
    return {
        "streams": len(every),
        "unjudged_characters": sum(unjudged for unjudged, _ in lost),
        "lost_characters": sum(abs(missing) for _, missing in lost),
        "crossed_characters": sum(crossed(seen, texts) for seen in every),
        "failed": sum(seen.failed is not None for seen in every),
        "audit_problems": len(run.problems),
        "sentences": len(holds),
        **quantiles("held", holds),
        "answers_per_minute": 60 * len(every) / seconds,
        "server_bytes": memory,
        "actions": {action: actions[action] for action in ACTIONS},
        "policy": Policy(texts=Texts(**TEXTS)).hash,
    }


@benchmark
@count("--answers", 60, "Answers that are judged.")
@listed("--dtypes", click.Choice(["float32", "bfloat16"]), "float32,bfloat16", "Of the reader.")
@reader("default")
@quick(answers=5, reader="tiny")
def capacity(answers: int, dtypes: tuple[str, ...], reader: str, quick: bool) -> Result:
    """Answers a minute through POST /v1/judge, one after the other: the reader judges one at a time.

    \b
    Examples:
      python -m benchmarks.service capacity --quick
      python -m benchmarks.service capacity --dtypes bfloat16
    """
    bodies, result = [judge_body(one) for one in examples(answers)], dict[str, Any]()
    for dtype in dtypes:
        with guarded([], reader=reader, dtype=dtype) as run:
            seconds_of(run.url, bodies[:1])  # the first pass is slower
            seconds = seconds_of(run.url, bodies)
        result[f"{dtype}_answers_per_minute"] = 60 * len(seconds) / sum(seconds)
        result |= quantiles(f"{dtype}_seconds", seconds)
    return result


Reply = tuple[int, float]
"""Status (0: the connection failed) and seconds."""


def arrivals(rate: float, seconds: float) -> list[float]:
    """Moments at which requests are sent, whether or not those before were answered: a Poisson process."""
    random, at, moments = Random(0), 0.0, list[float]()
    while (at := at + random.expovariate(rate)) < seconds:
        moments.append(at)
    return moments


def offer(url: str, bodies: Sequence[dict[str, Any]], moments: Sequence[float]) -> list[Reply]:
    """One request at each moment."""

    async def work(client: httpx.AsyncClient) -> list[Reply]:
        began = time.monotonic()

        async def post(number: int, moment: float) -> Reply:
            await asyncio.sleep(began + moment - time.monotonic())
            sent = time.monotonic()
            try:
                status = (await client.post("/v1/judge", json=bodies[number % len(bodies)])).status_code
            except httpx.HTTPError:
                status = 0
            return status, time.monotonic() - sent

        return await asyncio.gather(*(post(k, moment) for k, moment in enumerate(moments)))

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
def overload(
    times: float, seconds: float, deadline: float, most_waiting: int, dtype: str, reader: str, slow: float,
    quick: bool,
) -> Result:  # fmt: skip
    """Offer several times the capacity, by a Poisson process that waits for no reply: what is refused and how
    fast, and whether what was accepted is judged within its deadline.

    \b
    Examples:
      python -m benchmarks.service overload --quick
      python -m benchmarks.service overload --times 5 --seconds 300
    """
    bodies = [judge_body(one) for one in examples(550)]  # few of them again: prompts stay read
    settings: dict[str, Any] = {"seconds": deadline, "most_waiting": most_waiting, "dtype": dtype}
    with guarded([], reader=reader, slow=slow, **settings) as run:
        alone = seconds_of(run.url, bodies[: MEASURED + 1])[1:]  # the first pass is slower
        rate = times * len(alone) / sum(alone)
        replies = offer(run.url, bodies[MEASURED + 1 :], arrivals(rate, seconds))
    accepted = [taken for status, taken in replies if status == 200]
    statuses = Counter(status for status, _ in replies)
    return {
        "capacity_per_minute": 60 / (sum(alone) / len(alone)),
        "offered": len(replies),
        "offered_per_minute": 60 * rate,
        "statuses": {str(status): number for status, number in sorted(statuses.items())},
        "server_errors": sum(status >= 500 or status == 0 for status, _ in replies),
        "late": sum(taken > deadline for taken in accepted),
        "accepted_per_minute": 60 * len(accepted) / seconds,
        **quantiles("refused", [taken for status, taken in replies if status == 429]),
        **quantiles("accepted", accepted),
        "audit_problems": len(run.problems),
    }


async def act(client: httpx.AsyncClient, kind: str, number: int, cases: Sequence[Example]) -> None:
    """Do what a client of this kind does."""
    example = cases[number]
    if kind == "stream":
        await ask(client, number, example)
    elif kind == "judge":
        await client.post("/v1/judge", json=judge_body(example))
    elif kind == "whole":
        await client.post("/v1/chat/completions", json=chat_body(number, example))
    elif kind == "batch":
        await client.post("/v1/judge/batch", json={"requests": [judge_body(example)] * 2})
    elif kind == "invalid":
        route = "/v1/judge" if number % 2 else "/v1/chat/completions"
        await client.post(route, content=INVALID[number % len(INVALID)])
    elif kind == "look":
        await client.get("/metrics")
        await client.get("/v1/decisions/none")
    elif kind == "vanish":
        seen = Seen(number)
        task = asyncio.create_task(ask(client, number, example, seen))
        while not seen.chunks and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def traffic(
    server: Server, cases: Sequence[Example], clients: int, minutes: float
) -> tuple[list[list[float]], Counter[str]]:
    """Samples of minutes and bytes (RSS), and how often clients of each kind came."""
    began, samples, done = time.monotonic(), list[list[float]](), Counter[str]()

    def passed() -> float:
        return (time.monotonic() - began) / 60

    async def go_on(client: httpx.AsyncClient, random: Random) -> None:
        while passed() < minutes:
            (kind,) = random.choices(list(MIX), list(MIX.values()))
            try:
                await act(client, kind, random.randrange(len(cases)), cases)
                done[kind] += 1
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


def held_open(server: Server) -> tuple[int, int]:
    """Descriptors and threads of a server without clients."""
    server.wait_until_idle()
    time.sleep(1)
    return server.process.num_fds(), server.process.num_threads()


@benchmark
@click.option("--minutes", default=60.0, show_default=True, help="Of traffic.")
@click.option(
    "--warm-up", default=10.0, show_default=True, help="The first minutes, that nothing is told of."
)
@count("--clients", 3, "At a time.")
@pause
@command.dtype
@reader("default")
@quick(minutes=0.1, warm_up=0.03, pause=0.0, reader="tiny")
def soak(
    minutes: float, warm_up: float, clients: int, pause: float, dtype: str, reader: str, quick: bool
) -> Result:
    """Streams, judgements, batches, clients that vanish and requests that are invalid, all at once: memory of
    the server over time, and its open descriptors and threads after the warm-up and at the end.

    \b
    Examples:
      python -m benchmarks.service soak --quick
      python -m benchmarks.service soak --minutes 60
    """
    cases = examples(60)
    with guarded(responses(cases), pause, reader=reader, dtype=dtype) as run:
        early, _ = asyncio.run(traffic(run.server, cases, clients, warm_up))
        before = held_open(run.server)
        late, done = asyncio.run(traffic(run.server, cases, clients, minutes - warm_up))
        after = held_open(run.server)
    middle, low, high = slope(late)
    samples = early + [[minute + warm_up, size] for minute, size in late]
    return {
        "slope_mb_per_hour": middle,
        "slope_low": low,
        "slope_high": high,
        "bytes_after_warm_up": late[0][1],
        "bytes_at_end": late[-1][1],
        "descriptors": [before[0], after[0]],
        "server_threads": [before[1], after[1]],
        "requests": dict(done),
        "decisions": len(run.records),
        "audit_problems": len(run.problems),
        "samples": [[round(minute, 3), size] for minute, size in samples],
    }
