"""Faults at random moments: does anything leave that was not judged, and is each failure told as one?"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psutil

from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import Seen, ask, chat_body, examples, judge_body, with_client
from benchmarks.service.process import READ_ONLY, READER
from benchmarks.service.server import Server, quick, recorded, started
from benchmarks.service.streams import POLICY, WITHHELD, Records, leaked, says_nothing, told
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import MISDEEDS, Upstream, Writer
from lrp4rag.example import Example

FULL, DEAD = "disk full", "dead"
KINDS = (READER, READ_ONLY, FULL, DEAD, *MISDEEDS)
FAILURES = (502, 503)


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


def ask_under(
    kind: str, server: Server, upstream: Upstream, given: tuple[int, Example], wait: float
) -> Replies:
    """Three requests, with a fault that begins `wait` seconds after they are sent."""
    number, example = given
    more: dict[str, Any] = {"user": kind} if kind in MISDEEDS else {}

    async def work(client: httpx.AsyncClient) -> Replies:
        asked = asyncio.gather(
            client.post("/v1/judge", json=judge_body(example)),
            ask(client, number, example, **more),
            client.post("/v1/chat/completions", json=chat_body(number, example, **more)),
        )
        await asyncio.sleep(wait)
        with fault(kind, server, upstream):
            return await asked

    return with_client(server.url, work)


def unjudged(replies: Replies, answer: str, records: Records) -> int:
    """Characters that were served without a recorded verdict."""
    judged, seen, whole = replies
    count = leaked(seen, answer, records)[0]
    if judged.status_code == 200:
        decision = judged.json()["decision"]
        count += 0 if is_judged(records.get(decision["id"], {}), decision["action"]) else len(answer)
    if whole.status_code == 200:
        rest = told(whole.json()["choices"][0]["message"]["content"])
        for one in whole.json()["lrp4rag"]["sentences"]:
            record = records.get(one["id"], {})
            if is_judged(record, one["action"]) and record["action"] not in WITHHELD:
                rest = rest.replace(told(answer[record["start"] : record["end"]]), "", 1)
        count += 0 if says_nothing(rest) else len(rest)
    return count


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
def main(faults: int, quick: bool) -> Report:
    """Let the reader raise, the database be read-only, the disk be full, or the upstream be dead, cut its
    answer, refuse or babble, at random moments of requests: answers that were served unjudged, and replies
    that tell of no failure.

    \b
    Examples:
      python -m benchmarks.service.faults --quick
      python -m benchmarks.service.faults --faults 100
    """
    random, some = Random(0), examples(faults)
    texts, every, recovered = [str(one.response) for one in some], list[Replies](), 0
    with tempfile.TemporaryDirectory() as name, Upstream(Writer(texts, 0.02)) as upstream:
        folder = Path(name)
        with started(folder, upstream=upstream.url, policy=POLICY) as server:
            for k, example in enumerate(some):
                kind, wait = KINDS[k % len(KINDS)], random.choice([0.0, random.random() / 2])
                every.append(ask_under(kind, server, upstream, (k, example), wait))
                after = httpx.post(f"{server.url}/v1/judge", json=judge_body(example), timeout=60)
                recovered += after.is_success
        records, problems = recorded(folder)
    by_kind = {kind: Counter[str]() for kind in KINDS}
    for k, replies in enumerate(every):
        by_kind[KINDS[k % len(KINDS)]].update(outcomes(replies))
    known = ("answered", "failed", "ended with an error")
    result: dict[str, Any] = {
        "faults": faults,
        "unjudged_characters": sum(unjudged(one, texts[k], records) for k, one in enumerate(every)),
        "unexpected": sum(n for one in by_kind.values() for what, n in one.items() if what not in known),
        "recovered": recovered,
        "audit_problems": len(problems),
        "outcomes": {kind: dict(one) for kind, one in by_kind.items()},
    }
    return result | {"reader": "tiny"}, rows_of(result)


if __name__ == "__main__":
    main()
