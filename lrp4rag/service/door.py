"""What a request passes before its route: its size is bounded, and its token is known."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lrp4rag.service import metrics
from lrp4rag.service.access import Access
from lrp4rag.service.problems import Problem, as_problem

LOG = logging.getLogger("lrp4rag.service")
CLIENT = "lrp4rag.client"
"""Under which a request's scope has the name of its client."""
OPEN = ("/", "/healthz", "/readyz", "/metrics", "/docs", "/redoc", "/openapi.json")
"""Anybody may ask for these."""
PAGE = "/page/"
"""Under which the page's own files are: anybody may ask for these too, and they tell nothing of anybody."""


class Known:
    """Names the client of a request by its token, and counts the request, before its body is read. One whose
    client is named already came through another door."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and CLIENT not in scope and not _open(scope["path"]):
            access: Access = scope["app"].state.server.access
            headers = Headers(scope=scope)
            key = headers.get("x-api-key")  # LiteLLM sends its key so
            given = headers.get("authorization") or (None if key is None else f"Bearer {key}")
            try:
                scope[CLIENT] = access.name_of(given)
                access.count(scope[CLIENT])
            except Problem as problem:
                await problem.reply()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _open(path: str) -> bool:
    return path in OPEN or path.startswith(PAGE)


class Limited:
    """Refuses a body of more than `largest` bytes while it comes in, counts refusals by status, and makes a
    problem of what failed."""

    def __init__(self, app: ASGIApp, largest: int) -> None:
        self._app, self._largest = app, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
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
