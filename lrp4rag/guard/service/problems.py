"""Errors as problem documents (RFC 9457), in one form for every route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from lrp4rag.util.errors import InputError
from lrp4rag.util.text import clipped, visible

MEDIA_TYPE = "application/problem+json"
LONGEST = 500
MOST_ERRORS = 10


class Problem(Exception):  # noqa: N818 - as RFC 9457 calls it
    """A request that gets no answer: its HTTP `status`, a `title` that is the same for all of its kind, and
    the `detail` of this one. `headers` are those of the reply, `more` are further members."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        *,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail or title)
        self.status, self.title, self.detail = status, title, visible(clipped(detail, LONGEST))
        self.headers, self.more = headers or {}, more

    def document(self) -> dict[str, Any]:
        """Return the problem document."""
        document = {"type": "about:blank", "title": self.title, "status": self.status, **self.more}
        document |= {"detail": self.detail} if self.detail else {}
        return document | {"error": self.error()}

    def error(self) -> dict[str, Any]:
        """Return the error as OpenAI writes it: its client shows people no other field."""
        first: dict[str, Any] = next(iter(self.more.get("errors", ())), {})
        field = self.more.get("field") or first.get("field")
        message = self.detail or ": ".join(filter(None, (field, first.get("message")))) or self.title
        return {"message": message, "type": self.title, "param": field, "code": self.status}

    def reply(self) -> JSONResponse:
        return JSONResponse(self.document(), self.status, self.headers, media_type=MEDIA_TYPE)


def busy(seconds: float, why: str = "the reader is busy") -> Problem:
    """Return the problem (429) of a request that cannot be answered in time, which is refused at once."""
    after = max(1, round(seconds))
    return Problem(
        429,
        "Too many requests",
        f"{why}; try again in {after} s",
        headers={"Retry-After": str(after)},
    )


def as_problem(error: Exception) -> Problem:
    """Return the problem of any error. Where the request is not at fault, it says nothing of the request: a
    message may hold its text."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, InputError):
        return Problem(422, "Cannot be judged", str(error))
    return Problem(503, "Unavailable", "the response could not be judged")


def register(app: FastAPI) -> None:
    """Let the app answer errors by problem documents."""

    @app.exception_handler(Problem)
    @app.exception_handler(InputError)
    async def _problem(_: Request, error: Exception) -> JSONResponse:
        return as_problem(error).reply()

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        errors = [
            {"field": ".".join(map(str, details["loc"][1:])), "message": details["msg"]}
            for details in error.errors()[:MOST_ERRORS]
        ]
        return Problem(422, "Invalid request", errors=errors).reply()

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        return Problem(error.status_code, str(error.detail), headers=headers).reply()
