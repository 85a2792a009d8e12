"""Faults: a server that is killed, parts of it that fail, clients that vanish."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psutil

from benchmarks import command
from benchmarks.command import Result, benchmark, count
from benchmarks.service.client import (
    Seen,
    ask,
    chat_body,
    examples,
    judge_body,
    quantiles,
    responses,
    seconds_of,
    with_client,
)
from benchmarks.service.server import (
    READ_ONLY,
    READER,
    Guarded,
    Server,
    guarded,
    pause,
    quick,
    reader,
    recorded,
    started,
)
from benchmarks.service.streams import POLICY, Records, content_of, leaked, says_nothing
from benchmarks.service.upstream import MISDEEDS, Upstream, Writer
from lrp4rag.example import Example
from lrp4rag.guard.policy import WITHHELD

FULL, DEAD = "disk full", "dead"
KINDS = (READER, READ_ONLY, FULL, DEAD, *MISDEEDS)
FAILURES = (502, 503)


# A server that is killed


def decisions_until_killed(server: Server, cases: list[Example], clients: int, seconds: float) -> set[str]:
    """The ids of all decisions that clients got, by streams and by judgements, before the server was killed,
    so many seconds after the first of them."""
    decisions: set[str] = set()

    async def stream(client: httpx.AsyncClient, number: int) -> None:
        seen = Seen(number)
        try:
            await ask(client, number, cases[number], seen)
        finally:  # also what came before the connection was lost
            decisions.update(seen.ids)

    async def judge(client: httpx.AsyncClient, number: int) -> None:
        reply = await client.post("/v1/judge", json=judge_body(cases[number]))
        if reply.status_code == 200:
            decisions.add(reply.json()["decision"]["id"])

    async def go_on(client: httpx.AsyncClient, random: Random) -> None:
        while True:
            try:
                await random.choice([stream, judge])(client, random.randrange(len(cases)))
            except httpx.HTTPError:
                return

    async def work(client: httpx.AsyncClient) -> None:
        tasks = [asyncio.create_task(go_on(client, Random(k))) for k in range(clients)]
        while not decisions and not all(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(server.kill)
        await asyncio.wait_for(asyncio.gather(*tasks), 60)

    with_client(server.url, work)
    return decisions


@benchmark
@count("--kills", 30, "Of the server, each at a random moment.")
@count("--clients", 4, "That stream and judge meanwhile.")
@reader("tiny")
@quick(kills=2)
def kill(kills: int, clients: int, reader: str, quick: bool) -> Result:
    """Kill the server again and again while clients use it, and start it again on the same log: is every
    decision that a client was told in the chain, is the chain whole, does the server judge again?

    \b
    Examples:
      python -m benchmarks.service kill --quick
      python -m benchmarks.service kill --kills 30
    """
    random, cases = Random(0), examples(20)
    told, problems, missing, restarted = set[str](), list[str](), 0, 0
    with tempfile.TemporaryDirectory() as name, Upstream(Writer(responses(cases), 0.005)) as upstream:
        folder = Path(name)
        for _ in range(kills):
            with started(folder, reader=reader, upstream=upstream.url) as server:
                moment = random.uniform(0.0, 3.0 if reader == "tiny" else 30.0)
                told |= decisions_until_killed(server, cases, clients, moment)
            records, found = recorded(folder)
            missing += len(told - records.keys())
            problems += found
            with started(folder, reader=reader) as server:
                body = judge_body(cases[0])
                restarted += httpx.post(f"{server.url}/v1/judge", json=body, timeout=60).is_success
    return {
        "decisions_told": len(told),
        "decisions_recorded": len(records),
        "decisions_missing": missing,
        "audit_problems": len(problems),
        "problems": problems[:20],
        "started_again": restarted,
    }


# Parts that fail


@contextmanager
def fault(kind: str, server: Server, upstream: Upstream) -> Iterator[None]:
    """While it lasts, the reader, the database, the disk or the upstream fails. The upstream's own misdeeds
    are asked for by requests."""
    file, limit = server.folder / "fault", psutil.RLIMIT_FSIZE
    file.write_text(kind)
    if kind == FULL:  # no file of the server's can grow; its own code is not told
        server.process.rlimit(limit, (0, psutil.RLIM_INFINITY))
    if kind == DEAD:
        upstream.stop()
    try:
        yield
    finally:
        file.unlink()
        if kind == FULL:
            server.process.rlimit(limit, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        if kind == DEAD:
            upstream.start()


Replies = tuple[httpx.Response, Seen, httpx.Response]
"""Of a judgement, of a stream, and of an answer in one piece."""


def ask_under(kind: str, run: Guarded, number: int, example: Example, wait: float) -> Replies:
    """Three requests, with a fault that begins `wait` seconds after they are sent."""
    more: dict[str, Any] = {"user": kind} if kind in MISDEEDS else {}

    async def work(client: httpx.AsyncClient) -> Replies:
        asked = asyncio.gather(
            client.post("/v1/judge", json=judge_body(example)),
            ask(client, number, example, **more),
            client.post("/v1/chat/completions", json=chat_body(number, example, **more)),
        )
        await asyncio.sleep(wait)
        with fault(kind, run.server, run.upstream):
            return await asked

    return with_client(run.url, work)


def unjudged(replies: Replies, answer: str, records: Records) -> int:
    """Characters that were served without a recorded verdict."""
    judged, seen, whole = replies
    characters = leaked(seen, answer, records)[0]
    if judged.status_code == 200:
        decision = judged.json()["decision"]
        characters += 0 if is_judged(records.get(decision["id"], {}), decision["action"]) else len(answer)
    if whole.status_code == 200:
        rest = content_of(whole.json()["choices"][0]["message"]["content"])
        for sentence in whole.json()["lrp4rag"]["sentences"]:
            record = records.get(sentence["id"], {})
            if is_judged(record, sentence["action"]) and record["action"] not in WITHHELD:
                rest = rest.replace(content_of(answer[record["start"] : record["end"]]), "", 1)
        characters += 0 if says_nothing(rest) else len(rest)
    return characters


def is_judged(record: Any, action: str) -> bool:
    """Whether the log has this action, with a probability unless it is withheld."""
    return record.get("action") == action and (action in WITHHELD or record.get("probability") is not None)


def outcomes(replies: Replies) -> Iterator[str]:
    """How each reply tells what happened: an answer, a failure, or what no client can make sense of."""
    judged, seen, whole = replies
    codes = [f'"code": {code}' for code in FAILURES]
    for status in (judged.status_code, seen.status, whole.status_code):
        yield "answered" if status == 200 else "failed" if status in FAILURES else f"status {status}"
    if seen.status == 200 and seen.failed is not None:
        yield "ended with an error" if any(code in seen.failed for code in codes) else "ended without reason"


@benchmark
@count("--faults", 100, "Of all kinds in turn.")
@quick(faults=len(KINDS))
def faults(faults: int, quick: bool) -> Result:
    """Let the reader raise, the database be read-only, the disk be full, or the upstream be dead, cut its
    answer, refuse or babble, at random moments of requests: answers that were served unjudged, and replies
    that tell of no failure.

    \b
    Examples:
      python -m benchmarks.service faults --quick
      python -m benchmarks.service faults --faults 100
    """
    random, cases = Random(0), examples(faults)
    texts, every, recovered = responses(cases), list[tuple[str, Replies]](), 0
    with guarded(texts, 0.02, policy=POLICY) as run:
        for number, example in enumerate(cases):
            kind, wait = KINDS[number % len(KINDS)], random.choice([0.0, random.random() / 2])
            every.append((kind, ask_under(kind, run, number, example, wait)))
            recovered += httpx.post(f"{run.url}/v1/judge", json=judge_body(example), timeout=60).is_success
    by_kind = {kind: Counter[str]() for kind in KINDS}
    for kind, replies in every:
        by_kind[kind].update(outcomes(replies))
    known = ("answered", "failed", "ended with an error")
    return {
        "unjudged_characters": sum(unjudged(one, texts[k], run.records) for k, (_, one) in enumerate(every)),
        "unexpected": sum(n for one in by_kind.values() for what, n in one.items() if what not in known),
        "recovered": recovered,
        "audit_problems": len(run.problems),
        "outcomes": {kind: dict(one) for kind, one in by_kind.items()},
        "reader": "tiny",
    }


# Clients that vanish


def leave(run: Guarded, cases: list[Example], numbers: range, wait: float) -> int:
    """Stream these answers at once, and leave all of them `wait` seconds after the first text came. How many
    had begun, and not ended."""

    async def work(client: httpx.AsyncClient) -> int:
        every = [Seen(number) for number in numbers]
        tasks = [asyncio.create_task(ask(client, one.number, cases[one.number], one)) for one in every]
        while not any(one.chunks for one in every) and not all(task.done() for task in tasks):
            await asyncio.sleep(0.005)
        await asyncio.sleep(wait)
        left = sum(bool(one.chunks) and not task.done() for one, task in zip(every, tasks, strict=True))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return left

    return with_client(run.url, work)


@benchmark
@count("--rounds", 10, "In which all clients leave at once.")
@count("--clients", 10, "Of a round.")
@pause
@command.dtype
@reader("default")
@quick(rounds=2, clients=5, reader="tiny")
def vanishing(rounds: int, clients: int, pause: float, dtype: str, reader: str, quick: bool) -> Result:
    """Clients that stream and go away all at once: seconds until no job of theirs is left, and seconds that a
    new request then takes, beside those of the same request on an idle server.

    \b
    Examples:
      python -m benchmarks.service vanishing --quick
      python -m benchmarks.service vanishing --rounds 10 --clients 10
    """
    random, cases = Random(0), examples(rounds * clients)
    new, free, later, left = [judge_body(cases[0])], list[float](), list[float](), 0
    with guarded(responses(cases), pause, reader=reader, dtype=dtype) as run:
        seconds_of(run.url, new)  # the first pass is slower
        idle = seconds_of(run.url, 3 * new)
        for k in range(rounds):
            left += leave(run, cases, range(k * clients, (k + 1) * clients), random.random())
            gone = time.monotonic()
            run.server.wait_until_idle()
            free.append(time.monotonic() - gone)
            later += seconds_of(run.url, new)
    return {
        "clients_gone": rounds * clients,
        "in_the_middle": left,
        **quantiles("free", free),
        **quantiles("new_request", later),
        **quantiles("idle_request", idle),
        "audit_problems": len(run.problems),
    }
