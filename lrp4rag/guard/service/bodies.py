"""Bodies of requests: JSON, said to be JSON, and read strictly."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from lrp4rag.guard.service.problems import Problem
from lrp4rag.util.strict_json import parse


async def json_of(request: Request, *, invalid: int = 400) -> Any:
    """The body; raises a problem for what is not said to be JSON, since a browser sends any other kind to any
    server for any web site, and one of the status `invalid` for what is none."""
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
            given = _Read(request.scope, request.receive)
            given.value = await json_of(given, invalid=422)
            return await handler(given)

        return strict


class _Read(Request):
    value: Any

    async def json(self) -> Any:
        return self.value
