"""The guardrail under load: does anything leave before it was judged, and how long is a sentence held?

A server process with the real reader stands before an upstream that writes known answers word by word, cut at
random, inside characters and events too.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import click
import httpx
import numpy as np
import psutil
import uvicorn

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table
from lrp4rag.data import load_examples
from lrp4rag.errors import LRP4RAGError
from lrp4rag.example import Example
from lrp4rag.service.audit import AuditLog
from lrp4rag.service.policy import UNAVAILABLE, UNSUPPORTED, Policy
from lrp4rag.training.sets import set_path

STARTS_IN = 120
"""Seconds."""
NOTICES = (UNSUPPORTED, UNAVAILABLE)
MARKED = "<m>"


@dataclass
class Writer:
    """The upstream: answers by the number in the request's model, a word in each `pause` seconds. `sent` is
    when the character before each was written, by answer."""

    answers: list[str]
    pause: float
    sent: dict[int, list[float]] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        body, more = b"", scope["method"] == "POST"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = [(b"content-type", b"text/event-stream" if body else b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if not body:
            await send({"type": "http.response.body", "body": json.dumps({"data": [{"id": "0"}]}).encode()})
            return
        async for piece in self._pieces(int(json.loads(body)["model"])):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _pieces(self, number: int) -> AsyncIterator[bytes]:
        random, times = Random(number), list[float]()
        self.sent[number] = times
        for word in re.findall(r"\s*\S+\s*", self.answers[number]):
            await asyncio.sleep(self.pause)
            cut = random.randint(0, len(word))
            for part in (word[:cut], word[cut:]):
                data = _chunk({"content": part})
                at = random.randint(0, len(data))
                yield data[:at]
                yield data[at:]
            times += [time.monotonic()] * len(word)
        yield _chunk({}, "stop") + b"data: [DONE]\n\n"


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'choices': choices}, ensure_ascii=False)}\n\n".encode()


@contextmanager
def upstream(writer: Writer) -> Iterator[str]:
    """Its address; it runs in a thread of its own."""
    from threading import Thread

    server = uvicorn.Server(uvicorn.Config(writer, port=0, log_level="error", lifespan="off"))
    socket = server.config.bind_socket()
    thread = Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def guardrail(folder: Path, address: str, dtype: str) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a server before the upstream, and its process."""
    settings = {
        "port": 0, "open": True, "upstream": address, "dtype": dtype, "audit": f"sqlite:///{folder}/audit.db",
        "per_minute": 10**9, "most_waiting": 1000, "policy": {"mark": MARKED},
    }  # fmt: skip
    (folder / "settings.yaml").write_text(json.dumps(settings))
    arguments = [sys.executable, "-m", "lrp4rag", "serve", "--config", str(folder / "settings.yaml")]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            arguments, stdout=log, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        try:
            yield _address(process, folder / "log"), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    started = time.monotonic()
    while time.monotonic() - started < STARTS_IN and process.poll() is None:
        if (found := re.search(r"^(http://\S+)", log.read_text(), re.MULTILINE)) is not None:
            return found.group(1)
        time.sleep(0.2)
    raise LRP4RAGError(f"the server did not start: {log.read_text()[-500:]}")


@dataclass
class Seen:
    """What a client got: each chunk's text, when it came, and the decision beside it."""

    number: int
    chunks: list[tuple[str, float, dict[str, Any]]] = field(default_factory=list)
    failed: str | None = None


async def ask(client: httpx.AsyncClient, number: int, example: Example) -> Seen:
    seen = Seen(number)
    body = {
        "model": str(number),
        "stream": True,
        "messages": [{"role": "user", "content": example.question}],
        "lrp4rag": {"passages": list(example.passages)},
    }
    async with client.stream("POST", "/v1/chat/completions", json=body) as reply:
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk or reply.status_code != 200:
                seen.failed = line
                break
            content = chunk["choices"][0]["delta"].get("content", "")
            seen.chunks.append((content, time.monotonic(), chunk.get("lrp4rag", {})))
    return seen


async def ask_all(address: str, examples: list[Example], clients: int) -> list[Seen]:
    """By so many clients at a time."""
    slots = asyncio.Semaphore(clients)
    async with httpx.AsyncClient(base_url=address, timeout=600) as client:

        async def one(number: int) -> Seen:
            async with slots:
                return await ask(client, number, examples[number])

        return await asyncio.gather(*map(one, range(len(examples))))


def leaked(seen: Seen, answer: str, records: dict[str, dict[str, Any]]) -> tuple[int, int]:
    """Characters that left without a recorded decision to let them, and those that are lost."""
    unjudged, at = 0, 0
    for content, _, decision in seen.chunks:
        if not decision:
            unjudged += len(content.strip())
            at += len(content)
            continue
        record = records.get(decision["id"], {})
        if record.get("kind") != "sentence":
            continue
        text = answer[record["start"] : record["end"]]
        if record["start"] != at or record["action"] == "withhold":
            unjudged += len(content) if content.strip() not in ("", *NOTICES) else 0
        elif content.replace(MARKED, "") != text:
            unjudged += len(content)
        at = record["end"]
    return unjudged, len(answer) - at


def held(seen: Seen, answer: str, times: list[float], records: dict[str, dict[str, Any]]) -> list[float]:
    """Seconds between the first word after a sentence, with which its end is known, and its coming out."""
    found = []
    for _, came, decision in seen.chunks:
        record = records.get(decision.get("id", ""), {})
        if record.get("kind") == "sentence":
            after = re.compile(r"\s*\S+").match(answer, record["end"])
            known = min(after.end() if after else len(answer), len(times)) - 1
            found.append(max(came - times[known], 0.0))
    return found


@benchmark
@count("--answers", 100, "Streams.")
@count("--clients", 1, "At a time.")
@click.option("--pause", default=0.05, show_default=True, help="Seconds of the upstream for a word.")
@command.dtype
def main(answers: int, clients: int, pause: float, dtype: str) -> Report:
    """Streams through the guardrail: text that left unjudged, or was lost; seconds that sentences are held.

    \b
    Examples:
      python -m benchmarks.serving --answers 10
      python -m benchmarks.serving --answers 500 --clients 4 --dtype bfloat16
    """
    known = [one for one in load_examples(set_path(Path("everyday"))) if one.response]
    examples = Random(0).sample(known, min(answers, len(known)))
    texts = [str(one.response) for one in examples]
    writer = Writer(texts, pause)
    with tempfile.TemporaryDirectory() as name, upstream(writer) as address:
        folder = Path(name)
        with guardrail(folder, address, dtype) as (url, process):
            asyncio.run(ask_all(url, examples[:1], 1))  # the first pass is slower
            started = time.monotonic()
            every = asyncio.run(ask_all(url, examples, clients))
            seconds, memory = time.monotonic() - started, process.memory_info().rss
        with AuditLog.open(f"sqlite:///{folder}/audit.db") as log:
            problems = len(log.verify().problems)
            records = {str(entry.record["id"]): dict(entry.record) for entry in log.entries()}
    lost = [leaked(seen, texts[seen.number], records) for seen in every]
    holds = [x for seen in every for x in held(seen, texts[seen.number], writer.sent[seen.number], records)]
    result: dict[str, Any] = {
        "unjudged_characters": sum(one for one, _ in lost),
        "lost_characters": sum(abs(one) for _, one in lost),
        "failed": sum(seen.failed is not None for seen in every),
        "audit_problems": problems,
        "sentences": len(holds),
        "held_p50": float(np.quantile(holds, 0.5)) if holds else None,
        "held_p95": float(np.quantile(holds, 0.95)) if holds else None,
        "answers_per_minute": 60 * len(every) / seconds,
        "server_bytes": memory,
        "actions": {
            action: sum(one["action"] == action for one in records.values() if one["kind"] == "sentence")
            for action in ("serve", "mark", "withhold")
        },
        "policy": Policy().hash,
    }
    rows = [
        (name.replace("_", " "), f"{value:.3g}" if isinstance(value, float) else str(value))
        for name, value in result.items()
    ]
    return result, table(("", ""), rows)


if __name__ == "__main__":
    main()
