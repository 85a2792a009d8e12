"""The gateway of a server with replicas: it bounds each request and hands it to one replica.

Ray's own proxy is not used: where a replica dies it replies with status 500 and no Retry-After, where none is
there it waits without end, and it holds a body of any size. A request is never sent twice: it may have been
judged and recorded, and only its client knows whether to ask again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from prometheus_client import Metric
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from lrp4rag.guard.service import chat, metrics, problems
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.requests import BodyLimitMiddleware
from lrp4rag.guard.service.settings import Settings

LOG = logging.getLogger("lrp4rag.service")
ACCEPT_SECONDS = 10.0
"""Seconds in which a replica accepts a request."""
RETRY_AFTER = 5
"""Seconds after which a client may ask again where a replica died, or none is there."""

Ask = Callable[[Scope, bytes], AsyncGenerator[Message | None]]
"""Asks one replica to answer a request (`Replica.answer`). Raises where the replica dies."""
Collect = Callable[[], Awaitable[Mapping[str, list[Metric]]]]
"""Collects the metrics of each replica, by its name."""


def create_gateway(settings: Settings, ask: Ask, collect: Collect) -> FastAPI:
    """Create the ASGI application that clients reach. Tokens and rates are the replicas' own to check."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.add_middleware(BodyLimitMiddleware, largest=settings.largest_request)
    problems.register(app)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def prometheus() -> PlainTextResponse:
        return PlainTextResponse(metrics.joined(await collect()), media_type=metrics.CONTENT_TYPE)

    app.router.default = partial(_forward, ask)
    return app


async def _forward(ask: Ask, scope: Scope, receive: Receive, send: Send) -> None:
    """Relay a request and its reply until either is complete or the client disconnects."""
    if scope["type"] != "http":
        return
    try:
        body = await Request(scope, receive).body()
    except ClientDisconnect:
        return
    relay = asyncio.ensure_future(_relay(ask, picklable_scope(scope), body, send))
    disconnect = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({relay, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (relay, disconnect):
            task.cancel()
        await asyncio.wait({relay, disconnect})
    if not relay.cancelled():
        relay.result()


async def _relay(ask: Ask, scope: Scope, body: bytes, send: Send) -> None:
    """Send the messages of a replica. Raises a problem (503) where it dies before it sent content; a stream
    of events that it leaves ends with an error, and any other reply is cut."""
    start: Message | None = None  # kept back until there is content: so long, a status of 503 can be sent
    begun = complete = done = False
    try:
        async with aclosing(ask(scope, body)) as messages:
            async with asyncio.timeout(ACCEPT_SECONDS):
                await anext(messages, None)
            async for message in messages:
                if message is None or message["type"] == "http.response.start":
                    start = message
                    continue
                if not begun and start is not None:
                    await send(start)
                begun, complete = True, not message.get("more_body", False)
                done = done or message.get("body", b"").endswith(chat.DONE.encode())
                await send(message)
    except Exception as error:
        LOG.error("a replica left a request: %s", type(error).__name__)
    if complete:
        return
    problem = Problem(
        503,
        "Unavailable",
        "the replica that answered has gone, or none is there; nothing more of this answer comes",
        headers={"Retry-After": str(RETRY_AFTER)},
    )
    events = Headers(raw=(start or {}).get("headers", [])).get("content-type", "")
    if not begun or not events.startswith("text/event-stream"):
        raise problem  # a reply that has begun is cut: its connection is closed
    await send({"type": "http.response.body", "body": b"" if done else chat.failed(problem).encode()})


def picklable_scope(scope: Scope) -> Scope:
    """Return the fields of a request's scope that can be sent to another process."""
    names = ("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string")
    fields = {name: scope[name] for name in names if name in scope}
    addresses = {name: scope[name] and tuple(scope[name]) for name in ("client", "server") if name in scope}
    return {**fields, **addresses, "headers": [tuple(pair) for pair in scope["headers"]]}
