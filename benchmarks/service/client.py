"""Ask the server: the requests of clients, and what came back of their streams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import httpx
import numpy as np

from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.training.sets import set_path

TIMEOUT = 600
"""Seconds."""
T = TypeVar("T")


def examples(count: int, seed: int = 0) -> list[Example]:
    """Questions, passages and responses as people have them; after 550 they come again."""
    known = [one for one in load_examples(set_path(Path("everyday"))) if one.response]
    chosen = Random(seed).sample(known, min(count, len(known)))
    return [chosen[k % len(chosen)] for k in range(count)]


def responses(examples: Sequence[Example]) -> list[str]:
    return [str(example.response) for example in examples]


def judge_body(example: Example) -> dict[str, Any]:
    return {
        "question": example.question,
        "passages": list(example.passages),
        "response": example.response,
    }


def chat_body(number: int, example: Example, **more: Any) -> dict[str, Any]:
    """Ask the benchmark's upstream for its answer of this number."""
    return {
        "model": str(number),
        "messages": [{"role": "user", "content": example.question}],
        "lrp4rag": {"passages": list(example.passages)},
        **more,
    }


@dataclass
class Seen:
    """A stream as its client got it: each chunk's text, its time and the decision beside it; the `status`,
    and the error that it ended with."""

    number: int
    chunks: list[tuple[str, float, dict[str, Any]]] = field(default_factory=list)
    failed: str | None = None
    status: int = 0

    @property
    def ids(self) -> list[str]:
        """Of the decisions."""
        return [decision["id"] for _, _, decision in self.chunks if decision]


async def ask(
    client: httpx.AsyncClient, number: int, example: Example, seen: Seen | None = None, **more: Any
) -> Seen:
    """Stream an answer. Chunks before an error of the connection, which is raised, are in `seen`."""
    seen = Seen(number) if seen is None else seen
    body = chat_body(number, example, stream=True, **more)
    async with client.stream("POST", "/v1/chat/completions", json=body) as reply:
        seen.status = reply.status_code
        if reply.status_code != 200:
            seen.failed = (await reply.aread()).decode(errors="replace")
            return seen
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk:
                seen.failed = line
                break
            content = chunk["choices"][0]["delta"].get("content", "")
            seen.chunks.append((content, time.monotonic(), chunk.get("lrp4rag", {})))
    return seen


def with_client(url: str, work: Callable[[httpx.AsyncClient], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine with one client, which has as many connections as it likes."""

    async def run() -> T:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT, limits=limits) as client:
            return await work(client)

    return asyncio.run(run())


def ask_all(url: str, examples: Sequence[Example], clients: int) -> list[Seen]:
    """Stream all answers, by so many clients at a time."""

    async def work(client: httpx.AsyncClient) -> list[Seen]:
        slots = asyncio.Semaphore(clients)

        async def stream(number: int) -> Seen:
            async with slots:
                return await ask(client, number, examples[number])

        return await asyncio.gather(*map(stream, range(len(examples))))

    return with_client(url, work)


def seconds_of(url: str, bodies: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds of each judgement, one after the other. Raises `httpx.HTTPStatusError` for a refusal."""
    taken = []
    with httpx.Client(base_url=url, timeout=TIMEOUT) as client:
        for body in bodies:
            began = time.monotonic()
            client.post("/v1/judge", json=body).raise_for_status()
            taken.append(time.monotonic() - began)
    return taken


def quantiles(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """The median and others of seconds, by names such as `held_p95`."""
    marks = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        f"{name}_{mark}": float(np.quantile(values, part)) if len(values) else None
        for mark, part in marks.items()
    }
