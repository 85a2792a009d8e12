"""Reading requests: bounded sizes, strict JSON, and clients that go before they have their reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.problems import Problem, as_problem
from lrp4rag.util.strict_json import parse

LOG = logging.getLogger("lrp4rag.service")
LARGEST_HEADERS = 64 * 1024
"""Bytes of a request before its body."""
LOOKS_EVERY = 0.05
"""Seconds between looks at whether a client is still there."""
T = TypeVar("T")


def headers_too_large() -> Problem:
    detail = f"send at most {LARGEST_HEADERS} bytes before the body"
    return Problem(431, "Request header fields too large", detail)


class BodyLimitMiddleware:
    """Refuses headers that are too large, and a body of more than `largest` bytes while it comes in; counts
    refusals by status, and makes a problem document of an unexpected failure."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _head_bytes(scope) > LARGEST_HEADERS:
            metrics.refused(431)
            await headers_too_large().reply()(scope, receive, send)
            return
        size, started = 0, False
        too_large = Problem(413, "Request too large", f"send at most {self._largest} bytes")

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._largest:
                raise too_large
            return message

        async def counted(message: Message) -> None:
            if size > self._largest:  # the app's own reply to a body cut short
                return
            nonlocal started
            started = True
            if message["type"] == "http.response.start" and message["status"] >= 400:
                metrics.refused(message["status"])
            await send(message)

        failed: Exception | None = None
        try:
            await self._app(scope, limited, counted)
        except Exception as error:  # not raised further: a traceback in the log may hold a request's text
            failed = error
        if size > self._largest:
            metrics.refused(413)
            await too_large.reply()(scope, receive, send)
        elif failed is not None:
            LOG.error("a request failed: %s", type(failed).__name__)
            if not started:
                await as_problem(failed).reply()(scope, receive, counted)


def _head_bytes(scope: Scope) -> int:
    """Count the bytes of a request's line and headers."""
    line = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in scope.get("headers", ()))


async def json_of(request: Request, *, invalid: int = 400) -> Any:
    """Return the body; raises a problem (415) where it is not sent as JSON, since a browser sends any other
    type to any server for any web site, and one of the status `invalid` for broken JSON."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = "send JSON, with the header Content-Type: application/json"
        raise Problem(415, "Unsupported media type", detail, field="Content-Type")
    try:
        return parse(body)
    except (ValueError, RecursionError) as error:
        raise Problem(invalid, "Invalid request", f"the body is no JSON: {error}") from None


class StrictRoute(APIRoute):
    """A route whose body is read by `json_of`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def strict(request: Request) -> Response:
            parsed = _ParsedRequest(request.scope, request.receive)
            parsed.value = await json_of(parsed, invalid=422)
            return await handler(parsed)

        return strict


class _ParsedRequest(Request):
    value: Any

    async def json(self) -> Any:
        return self.value


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work; cancel it and raise a problem (499) where the client goes before."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOKS_EVERY))[0]:
            if await request.is_disconnected():
                raise Problem(499, "Client closed request")
        return task.result()
    finally:
        task.cancel()
