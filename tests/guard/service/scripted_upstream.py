"""An OpenAI-compatible server whose answers, and misdeeds, are written down beforehand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any

from tests.guard.http_server import Handler, served


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> str:
    """An event of a stream."""
    delta = {} if content is None else {"content": content}
    found = {"id": "c", "object": "chat.completion.chunk", "model": "m"} | more
    found.setdefault("choices", [{"index": 0, "delta": delta, "finish_reason": finish}])
    return f"data: {json.dumps(found, ensure_ascii=False)}\n\n"


def events(*texts: str, finish: str = "stop") -> bytes:
    """A whole stream."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    parts = [chunk(""), *map(chunk, texts), chunk(finish=finish), chunk(choices=[], usage=usage)]
    return "".join([*parts, "data: [DONE]\n\n"]).encode()


def whole(content: str | None, finish: str | None = "stop", **more: Any) -> bytes:
    """An answer that is not streamed."""
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    found = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(found).encode()


@dataclass
class Script:
    """`stream` is sent in pieces of random length, as of this `kind`; the connection ends after it, whatever
    it holds."""

    stream: bytes = b""
    kind: str = "text/event-stream"
    status: int = 200
    error: dict[str, Any] | None = None
    seed: int = 0
    longest: int = 9
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def pieces(self) -> Iterator[bytes]:
        random, at = Random(self.seed), 0
        while at < len(self.stream):
            size = random.randint(1, self.longest)
            yield self.stream[at : at + size]
            at += size


@contextmanager
def serving(script: Script, models: Sequence[str] = ("m",)) -> Iterator[str]:
    """The address of a server that follows the script."""

    class Upstream(Handler, BaseHTTPRequestHandler):
        def _reply(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._reply(200, {"object": "list", "data": [{"id": name} for name in models]})

        def do_POST(self) -> None:
            script.asked.append(self.body())
            script.headers.append(dict(self.headers.items()))
            if script.error is not None or script.status != 200:
                self._reply(script.status, {"error": script.error or {"message": "no"}})
                return
            self.send_response(200)
            self.send_header("Content-Type", script.kind)
            self.end_headers()
            try:
                for piece in script.pieces():
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass  # the server has gone

    with served(Upstream) as url:
        yield url
