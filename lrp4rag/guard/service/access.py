"""Bearer tokens, and their middleware: who may use the server, how often, and under which name."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lrp4rag.guard.service.problems import Problem, busy
from lrp4rag.util.hashes import hash_of

CLIENT = "lrp4rag.client"
"""Key of the client's name in a request's scope."""
PUBLIC = ("/", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json")
"""Paths that need no token."""
PAGE = "/page/"
"""Prefix of the page's own files, which need none either."""
LOCAL = "localhost"


def new_token() -> tuple[str, str]:
    """Return a bearer token, and its hash for the configuration."""
    token = secrets.token_urlsafe(32)
    return token, hash_of_token(token)


def hash_of_token(token: str) -> str:
    """Hash a token by SHA-256: it is random and long, so that nothing slower is needed."""
    return hash_of(token.encode("utf-8", "surrogatepass"))


@dataclass(slots=True)
class Access:
    """`tokens` are hashes by name. Each may send `per_minute` requests, in bursts of as many, and have
    `most_answers` written at a time; without tokens everybody is one client."""

    tokens: Mapping[str, str]
    per_minute: int
    most_answers: int
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    _answers: Counter[str] = field(default_factory=Counter)

    def name_of(self, authorization: str | None) -> str:
        """Return the name of a request's token; raises a problem (401) for an unknown one."""
        if not self.tokens:
            return "anyone"
        scheme, _, token = (authorization or "").partition(" ")
        digest = hash_of_token(token.strip()) if scheme.casefold() == "bearer" else ""
        # All are compared, so that the time tells nothing.
        names = [name for name, hash in self.tokens.items() if hmac.compare_digest(hash, digest)]
        if not names:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Problem(401, "Unauthorized", "send a token: Authorization: Bearer …", headers=headers)
        return names[0]

    def count(self, name: str) -> None:
        """Count a request; raises a problem (429) for too many."""
        now = time.monotonic()
        left, then = self._left.get(name, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - then) * self.per_minute / 60)
        if left < 1:
            raise busy((1 - left) * 60 / self.per_minute)
        self._left[name] = left - 1, now

    @contextmanager
    def answering(self, name: str) -> Iterator[None]:
        """Count an answer while it is written; raises a problem (429) for too many at a time."""
        if self._answers[name] >= self.most_answers:
            raise busy(1, f"{self.most_answers} answers are being written for this token")
        self._answers[name] += 1
        try:
            yield
        finally:
            self._answers[name] -= 1


class AuthMiddleware:
    """Names the client of a request by its token and counts the request, before its body is read.

    A server without tokens is asked as localhost only: a web site may give this machine a name of its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                _authenticate(scope, scope["app"].state.server.access, Headers(scope=scope))
            except Problem as problem:
                await problem.reply()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _authenticate(scope: Scope, access: Access, headers: Headers) -> None:
    server, _ = scope.get("server") or ("", None)
    if not access.tokens and _is_loopback(server) and not _is_loopback(_host(headers.get("host", LOCAL))):
        detail = "without tokens, this server is asked as localhost only"
        raise Problem(421, "Misdirected request", detail, field="Host")
    if scope["path"] in PUBLIC or scope["path"].startswith(PAGE):
        return
    key = headers.get("x-api-key")  # LiteLLM's
    authorization = headers.get("authorization") or (None if key is None else f"Bearer {key}")
    scope[CLIENT] = access.name_of(authorization)
    access.count(scope[CLIENT])


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    name, _, port = header.rpartition(":")
    name = name if port.isdecimal() and not header.endswith("]") else header
    return name.strip("[]").rstrip(".").lower()


def _is_loopback(name: str) -> bool:
    """Say whether only this machine reaches a host of this name or address."""
    if name == LOCAL or name.endswith(f".{LOCAL}"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _client(request: Request, _: Annotated[object, Depends(HTTPBearer(auto_error=False))]) -> str:
    return str(request.scope[CLIENT])


Client = Annotated[str, Depends(_client)]
"""The name of a request's client, for routes."""
