"""A socket, and uvicorn on it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from lrp4rag.errors import LRP4RAGError
from lrp4rag.service.settings import Settings


def bind(settings: Settings) -> socket.socket:
    """A socket at the address of the settings, at which nobody is heard yet. Raises `LRP4RAGError` where it
    cannot be had."""
    bound = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with _address(settings):
        bound.bind((settings.host, settings.port))
    return bound


def listen(app: FastAPI, settings: Settings, bound: socket.socket, told: Callable[[int], None]) -> None:
    """Serve until a signal ends it; answers that are being written have `seconds` to end, unless it comes
    twice. `told` is called
    with the port once who asks is heard. Raises `LRP4RAGError` where another process was faster to listen,
    or the application does not start."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=max(1, round(settings.seconds)),
            server_header=False,
        )
    )
    with _address(settings):
        bound.listen()  # who asks now waits until the routes are there
    told(bound.getsockname()[1])

    def worth_telling(record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        cut_off = kind is not None and issubclass(kind, asyncio.CancelledError)
        return not (server.force_exit or cut_off)  # else a traceback for each answer that is cut off

    log = logging.getLogger("uvicorn.error")
    log.addFilter(worth_telling)
    try:
        server.run(sockets=[bound])
    finally:
        log.removeFilter(worth_telling)
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
