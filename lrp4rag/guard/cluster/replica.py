"""`Replica`: the application of `lrp4rag serve` in an actor of Ray, which is asked by calls in the place of a
socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from prometheus_client import Metric
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Scope

from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.judge import Detector

Load = Callable[[Settings], Detector]


class Replica:
    """Answers as the server does, with a reader of its own. `load` loads that; `threads` are its share of the
    machine's cores."""

    async def __init__(  # type: ignore[misc]  # Ray awaits it
        self,
        settings: Settings,
        load: Load,
        *,
        threads: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        os.environ.update(environment or {})
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        detector = await run_in_threadpool(load, settings)
        self._app = create_app(settings, detector)
        # It is never left: a replica ends with its process, and all that was told is on disk by then.
        self._open = AsyncExitStack()
        await self._open.enter_async_context(self._app.router.lifespan_context(self._app))

    async def answer(self, scope: Scope, body: bytes) -> AsyncGenerator[Message | None]:
        """The messages of the reply as they are sent. The first item is None: from there on, the request is
        this replica's."""
        yield None
        sent: asyncio.Queue[Message | None] = asyncio.Queue()
        work = asyncio.ensure_future(self._run(scope, body, sent))
        try:
            while (message := await sent.get()) is not None:
                yield message
        finally:  # also where the client has gone: the reader is given back
            work.cancel()
            await asyncio.wait({work})

    async def _run(self, scope: Scope, body: bytes, sent: asyncio.Queue[Message | None]) -> None:
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if given:
                return given.pop()
            await asyncio.Event().wait()  # until this is cancelled
            raise AssertionError

        try:
            await self._app(scope, receive, sent.put)
        finally:
            sent.put_nowait(None)

    async def metrics(self) -> tuple[str, list[Metric]]:
        """This replica's name, and what it has counted."""
        from ray import serve

        return serve.get_replica_context().replica_id.unique_id, await self._app.state.server.metrics()

    async def process(self) -> int:
        return os.getpid()


def plain_scope(scope: Scope, **more: Any) -> Scope:
    """What of a request's scope can be sent to another process."""
    kept = ("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string")
    found = {name: scope[name] for name in kept if name in scope}
    addresses = {name: scope[name] and tuple(scope[name]) for name in ("client", "server") if name in scope}
    return {**found, **addresses, "headers": [tuple(pair) for pair in scope["headers"]], **more}
