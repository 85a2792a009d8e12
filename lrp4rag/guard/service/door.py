"""What a request passes before its route: its size is bounded, and its token is known."""

from __future__ import annotations

import ipaddress
import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lrp4rag.guard.service import metrics
from lrp4rag.guard.service.access import Access
from lrp4rag.guard.service.problems import Problem, as_problem

LOG = logging.getLogger("lrp4rag.service")
CLIENT = "lrp4rag.client"
"""Under which a request's scope has the name of its client."""
OPEN = ("/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json")
"""Anybody may ask for these."""
PAGE = "/page/"
"""Under which the page's own files are: anybody may ask for these too, and they tell nothing of anybody."""
LARGEST_HEADERS = 64 * 1024
"""Bytes of a request before its body."""
LOCAL = "localhost"


def headers_too_large() -> Problem:
    detail = f"send at most {LARGEST_HEADERS} bytes before the body"
    return Problem(431, "Request header fields too large", detail)


class Known:
    """Names the client of a request by its token, and counts the request, before its body is read. Where no
    token tells, a web site that gives this machine a name of its own is no client. One whose client is named
    already came through another door."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and CLIENT not in scope:
            try:
                self._know(scope, Headers(scope=scope))
            except Problem as problem:
                await problem.reply()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    @staticmethod
    def _know(scope: Scope, headers: Headers) -> None:
        if _on_loopback(scope) and not _is_loopback(headers.get("host", LOCAL)):
            access: Access = scope["app"].state.server.access
            if not access.tokens:
                detail = "without tokens, this server is asked as localhost only"
                raise Problem(421, "Misdirected request", detail, field="Host")
        if _open(scope["path"]):
            return
        access = scope["app"].state.server.access
        key = headers.get("x-api-key")  # LiteLLM sends its key so
        given = headers.get("authorization") or (None if key is None else f"Bearer {key}")
        scope[CLIENT] = access.name_of(given)
        access.count(scope[CLIENT])


def _open(path: str) -> bool:
    return path in OPEN or path.startswith(PAGE)


def _on_loopback(scope: Scope) -> bool:
    """Whether the request came to an address that only this machine reaches."""
    host, _ = scope.get("server") or ("", None)
    return _is_address_of_loopback(host)


def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine: any other name may be one that a web site has given it."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
    name = name.strip("[]").rstrip(".").lower()
    return name == LOCAL or name.endswith(f".{LOCAL}") or _is_address_of_loopback(name)


def _is_address_of_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Limited:
    """Refuses headers that are too large, and a body of more than `largest` bytes while it comes in, counts
    refusals by status, and makes a problem of what failed."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _size_of_head(scope) > LARGEST_HEADERS:
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
            if size > self._largest:  # what the app makes of it is not told
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


def _size_of_head(scope: Scope) -> int:
    """Bytes of a request's line and headers, as they are sent."""
    line = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in scope.get("headers", ()))
