"""`Upstream`: an OpenAI-compatible server that writes known answers, cut at random, and errs on demand."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from random import Random
from threading import Thread
from typing import Any

import uvicorn

MISDEEDS = ("cut", "refuses", "babbles")
"""What a request may ask for in its field `user`: the answer ends in the middle; status 500; no chunks."""


@dataclass
class Writer:
    """Answers by the number in the request's model, a word in each `pause` seconds. `sent` is when each
    character was written, by answer. What it says of its misdeeds holds the `secret`."""

    answers: list[str]
    pause: float = 0.0
    secret: str = "secret"
    sent: dict[int, list[float]] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", scope["method"] == "POST"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        asked = json.loads(body) if body else {}
        misdeed = asked.get("user")
        status = 500 if misdeed == "refuses" else 200
        kind = b"text/event-stream" if body and status == 200 else b"application/json"
        headers = [(b"content-type", kind), (b"x-said", self.secret.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if not body or status != 200:
            said = {"data": [{"id": "0"}], "error": {"message": self.secret}}
            await send({"type": "http.response.body", "body": json.dumps(said).encode()})
            return
        model = str(asked.get("model"))
        number = int(model) % len(self.answers) if re.fullmatch("[0-9]{1,9}", model) else 0
        left = None if misdeed not in MISDEEDS else Random(number).randint(1, 20)
        async for piece in self.pieces(number):
            if left == 0:
                break
            left = None if left is None else left - 1
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if misdeed == "cut":
            raise ConnectionError  # the connection ends without the chunk that says so
        end = f"data: {self.secret}\n\n" if misdeed == "babbles" else ""
        await send({"type": "http.response.body", "body": end.encode()})

    async def pieces(self, number: int) -> AsyncIterator[bytes]:
        """The answer as server-sent events, cut inside words, characters and events too."""
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


class Upstream:
    """Serves a writer at `url`, in a thread of its own. Stopped, it starts again at the same address."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self._port = writer, 0

    def start(self) -> None:
        config = uvicorn.Config(self.writer, port=self._port, log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        socket = config.bind_socket()
        self._port = socket.getsockname()[1]
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [socket]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Upstream:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
