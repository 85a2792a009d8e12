"""A server of chat completions whose replies, and misdeeds, are written down beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.guard.http_server import Handler, served

GOOD = {"supported": "yes", "contradicted": "no", "cited": "yes", "omitted": "no", "insufficient": "no"}


def verdict(**words: str) -> dict[str, Any]:
    """The object that a judge replies with; a good one but for `words`."""
    return {name: {"answer": word, "reason": f"About {name}."} for name, word in (GOOD | words).items()}


def completion(content: object, **more: Any) -> bytes:
    """A whole reply; what is no text is put as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]} | more).encode()


@dataclass(frozen=True)
class Reply:
    """`cut` ends the connection before the body does, `drip` sends it byte by byte without an end."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    drip: bool = False


@dataclass
class Script:
    """The replies in their order; the last one is that to all further requests. None sends nothing at all."""

    replies: list[Reply | None] = field(default_factory=lambda: [Reply(completion(verdict()))])
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    """A client went away before its reply was sent."""


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """The address of a server that follows the script."""
    closing = threading.Event()

    class Replies(Handler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.body()
            reply = script.replies[min(len(script.asked), len(script.replies) - 1)]
            script.asked.append(asked)
            script.headers.append(dict(self.headers.items()))
            script.paths.append(self.path)
            try:
                self._send(reply)
            except OSError:
                script.gone.set()

        def _send(self, reply: Reply | None) -> None:
            if reply is None:
                self.connection.settimeout(10)
                if not self.connection.recv(1):
                    script.gone.set()
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if not reply.drip:
                self.send_header("Content-Length", str(len(reply.body) + (10 if reply.cut else 0)))
            self.end_headers()
            self.wfile.write(reply.body)
            while reply.drip and not closing.wait(0.02):
                self.wfile.write(b" ")

    with served(Replies) as url:
        try:
            yield url
        finally:
            closing.set()
