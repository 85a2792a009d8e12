"""Streams through the guardrail: does anything leave before it is judged, and how long is a sentence held?"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import httpx

from benchmarks import command
from benchmarks.command import Report, benchmark, count
from benchmarks.service.client import Seen, ask, examples, quantiles, with_client
from benchmarks.service.server import quick, reader, recorded, started
from benchmarks.service.table import rows_of
from benchmarks.service.upstream import Upstream, Writer
from lrp4rag.example import Example
from lrp4rag.guard.policy import ACTIONS, Policy
from lrp4rag.guard.policy.texts import Texts
from lrp4rag.guard.redteam import load_cases
from lrp4rag.guard.redteam.cases import ATTACKS

TEXTS = {name: f"<{name}>" for name in Texts.model_fields}
"""What the policy of a benchmark says: so that all else that comes is the answer's, or should not come."""
POLICY = {"texts": TEXTS}
WITHHELD = ("withhold", "escalate")
Records = Mapping[str, Mapping[str, Any]]


def told(content: str) -> str:
    """What came, without what the policy says and without white space."""
    for text in TEXTS.values():
        content = content.replace(text, "")
    return "".join(content.split())


def says_nothing(text: str) -> bool:
    """Whether it is Markdown only: what a withheld item, row or fence leaves, or what has no decision."""
    return re.fullmatch(r"[`~|:*_=>+#•‣◦▪-]*(\d{1,3}[.)])?\|*", text) is not None


def leaked(seen: Seen, answer: str, records: Records) -> tuple[int, int]:
    """Characters that left without a recorded decision to let them, and those that are lost. After a whole
    answer the policy may say something of it, which has no decision."""
    unjudged, at = 0, 0
    for content, _, decision in seen.chunks:
        record, left = records.get(decision.get("id", ""), {}), told(content)
        if record.get("kind") != "sentence":
            unjudged += 0 if says_nothing(left) else len(left)
            at = min(at + (0 if decision else len(content)), len(answer))
            continue
        served = record["start"] == at and record["action"] not in WITHHELD
        if not (served and left == told(answer[record["start"] : record["end"]])):
            unjudged += 0 if says_nothing(left) else len(left)
        at = record["end"]
    return unjudged, len(answer) - at


def crossed(seen: Seen, answers: Sequence[str]) -> int:
    """Characters of chunks that are not of this client's answer, and are of another's."""
    own = answers[seen.number]
    found = 0
    for content, _, _ in seen.chunks:
        text = told(content)
        if not says_nothing(text) and text not in told(own) and any(text in told(one) for one in answers):
            found += len(text)
    return found


def held(seen: Seen, answer: str, times: Sequence[float], records: Records) -> list[float]:
    """Seconds between the first word after a sentence, with which its end is known, and its coming out."""
    found = []
    for _, came, decision in seen.chunks:
        record = records.get(decision.get("id", ""), {})
        if record.get("kind") == "sentence":
            after = re.compile(r"\s*\S+").match(answer, record["end"])
            known = min(after.end() if after else len(answer), len(times)) - 1
            found.append(max(came - times[known], 0.0))
    return found


def ask_all(url: str, some: Sequence[Example], clients: int) -> list[Seen]:
    """By so many clients at a time."""

    async def work(client: httpx.AsyncClient) -> list[Seen]:
        slots = asyncio.Semaphore(clients)

        async def one(number: int) -> Seen:
            async with slots:
                return await ask(client, number, some[number])

        return await asyncio.gather(*map(one, range(len(some))))

    return with_client(url, work)


@benchmark
@count("--answers", 100, "Streams.")
@count("--clients", 1, "At a time.")
@click.option(
    "--attacks", is_flag=True, help="Stream the answers of the red team's attacks, all of them once."
)
@click.option("--pause", default=0.05, show_default=True, help="Seconds of the upstream for a word.")
@command.dtype
@reader("default")
@quick(answers=6, clients=3, pause=0.002, reader="tiny")
def main(
    answers: int, clients: int, attacks: bool, pause: float, dtype: str, reader: str, quick: bool
) -> Report:
    """Streams through the guardrail: text that left unjudged, was lost or went to another client;
    seconds that sentences are held.

    \b
    Examples:
      python -m benchmarks.service.streams --quick
      python -m benchmarks.service.streams --answers 500 --clients 4 --dtype bfloat16
      python -m benchmarks.service.streams --attacks
    """
    some = [one.example() for one in load_cases(kinds=[*ATTACKS])] if attacks else examples(answers)
    texts = [str(one.response) for one in some]
    with tempfile.TemporaryDirectory() as name, Upstream(Writer(texts, pause)) as upstream:
        folder = Path(name)
        with started(folder, reader=reader, upstream=upstream.url, dtype=dtype, policy=POLICY) as server:
            ask_all(server.url, some[:1], 1)  # the first pass is slower
            began = time.monotonic()
            every = ask_all(server.url, some, clients)
            seconds, memory = time.monotonic() - began, server.process.memory_info().rss
        records, problems = recorded(folder)
    lost = [leaked(seen, texts[seen.number], records) for seen in every]
    sent = upstream.writer.sent
    holds = [x for seen in every for x in held(seen, texts[seen.number], sent.get(seen.number, []), records)]
    result: dict[str, Any] = {
        "streams": len(every),
        "unjudged_characters": sum(one for one, _ in lost),
        "lost_characters": sum(abs(one) for _, one in lost),
        "crossed_characters": sum(crossed(seen, texts) for seen in every),
        "failed": sum(seen.failed is not None for seen in every),
        "audit_problems": len(problems),
        "sentences": len(holds),
        **quantiles("held", holds),
        "answers_per_minute": 60 * len(every) / seconds,
        "server_bytes": memory,
        "actions": {
            action: sum(one["action"] == action for one in records.values() if one["kind"] == "sentence")
            for action in ACTIONS
        },
        "policy": Policy(texts=Texts(**TEXTS)).hash,
    }
    return result, rows_of(result)


if __name__ == "__main__":
    main()
