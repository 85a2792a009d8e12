"""A socket, and uvicorn on it, with bounds on what comes before the application is asked."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.requests import LARGEST_HEADERS, headers_too_large
from lrp4rag.guard.service.settings import Settings
from lrp4rag.util.errors import LRP4RAGError

HEADERS_IN = 10.0
"""Seconds in which the headers of a request come."""
BODY_IN = 60.0
"""Seconds in which the body of a request comes."""
LINGERS = 2.0
"""Seconds for which what a refused client still sends is read and dropped, so that it can read why."""


class BoundedProtocol(H11Protocol):
    """HTTP of which the headers and the body of a request must come within a time. What is refused before the
    application is asked is a problem document too."""

    _deadline: asyncio.TimerHandle | None = None
    _waits_for: object = None
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request for which h11 raises."""
        large = getattr(sys.exc_info()[1], "error_status_hint", 400) == 431
        self._refuse(headers_too_large() if large else Problem(400, "Invalid request", "this is no HTTP"))

    def _watch(self) -> None:
        """Start the time limit of the part of a request that is awaited now."""
        waits_for = self.conn.their_state
        if waits_for is self._waits_for:
            return
        self._cancel()
        self._waits_for = waits_for
        seconds = {h11.IDLE: HEADERS_IN, h11.SEND_BODY: BODY_IN}.get(waits_for)
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self._late)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _late(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()  # nothing was asked
            return
        self._refuse(Problem(408, "Request timeout", "the request did not come whole in time"))

    def _refuse(self, problem: Problem) -> None:
        self._refused = True
        self._cancel()
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.is_closing():
            return
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # a reply has begun
            self.transport.close()
            return
        metrics.refused(problem.status)
        reply = problem.reply()
        headers = [*reply.raw_headers, (b"connection", b"close")]
        events = (
            h11.Response(status_code=reply.status_code, headers=headers),
            h11.Data(data=bytes(reply.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(filter(None, map(self.conn.send, events))))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGERS, self.transport.close)


BOUNDS: dict[str, Any] = {
    "http": BoundedProtocol,
    "h11_max_incomplete_event_size": LARGEST_HEADERS,
    "ws": "none",
}
"""Arguments of uvicorn's configuration."""


def bind(settings: Settings) -> socket.socket:
    """Bind a socket to the address of the settings, without listening yet. Raises `LRP4RAGError` where it
    cannot be bound."""
    bound = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with _address(settings):
        bound.bind((settings.host, settings.port))
    return bound


def listen(app: FastAPI, settings: Settings, bound: socket.socket, on_ready: Callable[[int], None]) -> None:
    """Serve until a signal; answers that are being written then have `seconds` to end, unless a second signal
    comes. `on_ready(port)` is called once the socket accepts connections. Raises `LRP4RAGError` where another
    process was faster to listen, or the application does not start."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=max(1, round(settings.seconds)),
            server_header=False,
            **BOUNDS,
        )
    )
    with _address(settings):
        bound.listen()  # who asks now waits until the routes are there
    on_ready(bound.getsockname()[1])

    def is_worth_logging(record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        cut_off = kind is not None and issubclass(kind, asyncio.CancelledError)
        return not (server.force_exit or cut_off)  # else a traceback for each stream that is cut off

    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_worth_logging)
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:  # raised again by uvicorn, once it has ended what was being written
        pass
    finally:
        log.removeFilter(is_worth_logging)
    if not server.started:
        raise LRP4RAGError("the server did not start")


@contextmanager
def _address(settings: Settings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LRP4RAGError(
            f"cannot listen at {settings.host}, port {settings.port}: {error.strerror}; choose another "
            "--port (0 takes a free one) or --host"
        ) from error
