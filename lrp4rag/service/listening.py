"""A socket, and uvicorn on it."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from lrp4rag.service.settings import Settings


def listen(app: FastAPI, settings: Settings, told: Callable[[int], None]) -> None:
    """Serve until a signal ends it; answers that are being written have `seconds` to end. `told` is called
    with the port once who asks is heard."""
    server = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=max(1, round(settings.seconds)),
        server_header=False,
    )
    socket = server.bind_socket()
    socket.listen()  # who asks now waits until the routes are there
    told(socket.getsockname()[1])
    uvicorn.Server(server).run(sockets=[socket])
