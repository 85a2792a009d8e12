"""The door of a server with replicas: it knows tokens, counts requests, and hands each to one replica.

What a client gets is what a replica sent. Where a replica dies, the request is not asked again: it may have
been judged and recorded, and only its client knows whether to ask once more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from prometheus_client import Metric
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from lrp4rag.guard.cluster.replica import plain_scope
from lrp4rag.guard.service import chat, metrics, problems
from lrp4rag.guard.service.access import CLIENT, Access, AuthMiddleware
from lrp4rag.guard.service.problems import Problem
from lrp4rag.guard.service.requests import BodyLimitMiddleware
from lrp4rag.guard.service.settings import Settings

LOG = logging.getLogger("lrp4rag.service")
TAKEN_IN = 10.0
"""Seconds in which a replica takes a request."""
AGAIN_IN = 5
"""Seconds after which a client may ask again where a replica died, or none is there."""
ANSWERS = "/v1/chat/completions"

Ask = Callable[[Scope, bytes], AsyncGenerator[Message | None]]
"""Has one replica answer a request; `Replica.answer` says what comes. Raises where the replica dies."""
Told = Callable[[], Awaitable[Mapping[str, list[Metric]]]]
"""What each replica has counted, by its name."""


@dataclass(frozen=True)
class Door:
    """What `AuthMiddleware` needs of a server."""

    access: Access


def create_door(
    settings: Settings,
    ask: Ask,
    told: Told,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """The ASGI application that clients reach. Tokens, rates, answers at a time and sizes are looked at here,
    so that they hold for all replicas together."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    access = Access(settings.tokens, settings.per_minute, settings.most_answers)
    app.state.server = Door(access)
    app.add_middleware(AuthMiddleware)
    app.add_middleware(BodyLimitMiddleware, largest=settings.largest_request)
    problems.register(app)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def prometheus() -> PlainTextResponse:
        return PlainTextResponse(metrics.joined(await told()), media_type=metrics.CONTENT_TYPE)

    app.router.default = _Forward(ask, access)
    return app


class _Forward:
    """Whatever the door does not answer itself is a replica's."""

    def __init__(self, ask: Ask, access: Access) -> None:
        self._ask, self._access = ask, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if body is None:
            return
        with self._answering(scope):
            work = asyncio.ensure_future(self._relay(plain_scope(scope, **_client(scope)), body, send))
            gone = asyncio.ensure_future(_gone(receive))
            try:
                await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (work, gone):
                    task.cancel()
                await asyncio.wait({work, gone})
            if not work.cancelled():
                work.result()

    @contextmanager
    def _answering(self, scope: Scope) -> Iterator[None]:
        """An answer holds a place of its token until it ends."""
        if (scope["method"], scope["path"]) != ("POST", ANSWERS):
            yield
            return
        with self._access.answering(str(scope[CLIENT])):
            yield

    async def _relay(self, scope: Scope, body: bytes, send: Send) -> None:
        """Send what a replica sends. Raises a problem (503) where it dies before it said anything; a stream
        of events that it leaves ends with an error, and any other reply is cut."""
        reply = _Reply(send)
        try:
            async with aclosing(self._ask(scope, body)) as messages:
                async with asyncio.timeout(TAKEN_IN):
                    await anext(messages, None)
                async for message in messages:
                    if message is not None:
                        await reply.add(message)
        except Exception as error:
            LOG.error("a replica left a request: %s", type(error).__name__)
        await reply.end()


class _Reply:
    """The messages of a replica's reply. Its status is kept back until there is something to send with it: so
    long, another can be told."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._begun = self._whole = self._done = False

    async def add(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        await self._begin()
        said = bytes(message.get("body", b""))
        self._done = self._done or (said.endswith(chat.DONE.encode()) and self._events)
        self._whole = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """There is no more."""
        if self._whole:
            return
        if self._done:  # only the end of its messages is missing
            await self._send({"type": "http.response.body"})
            return
        left = Problem(
            503,
            "Unavailable",
            "the replica that answered has gone, or none is there; nothing more of this answer comes",
            headers={"Retry-After": str(AGAIN_IN)},
        )
        if not self._begun:
            raise left
        if self._events:
            await self._send({"type": "http.response.body", "body": chat.failed(left).encode()})
            return
        raise left  # the connection is closed before its reply is whole

    @property
    def _events(self) -> bool:
        headers = Headers(raw=(self._start or {}).get("headers", []))
        return headers.get("content-type", "").startswith("text/event-stream")

    async def _begin(self) -> None:
        if not self._begun and self._start is not None:
            await self._send(self._start)
        self._begun = True


def _client(scope: Scope) -> dict[str, str]:
    return {CLIENT: scope[CLIENT]} if CLIENT in scope else {}


async def _body(receive: Receive) -> bytes | None:
    """All of a request's body; None where the client went meanwhile."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
