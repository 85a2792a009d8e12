"""Who may use the server, and how often."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from lrp4rag.guard.service.problems import Problem, busy


def new_token() -> tuple[str, str]:
    """A bearer token, and the hash that the configuration holds."""
    token = secrets.token_urlsafe(32)
    return token, hash_of_token(token)


def hash_of_token(token: str) -> str:
    """SHA-256: a token is random and long, so that nothing slower is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class Access:
    """`tokens` are hashes by name. Each may send `per_minute` requests, in bursts of as many, and have
    `most_answers` written at a time; without tokens everybody is one."""

    tokens: Mapping[str, str]
    per_minute: int
    most_answers: int
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    _answers: Counter[str] = field(default_factory=Counter)

    def name_of(self, authorization: str | None) -> str:
        """The name of a request's token; raises a problem (401) where there is none that is known."""
        if not self.tokens:
            return "anyone"
        scheme, _, token = (authorization or "").partition(" ")
        given = hash_of_token(token.strip()) if scheme.casefold() == "bearer" else ""
        # All are compared, so that the time tells nothing.
        known = [name for name, hash in self.tokens.items() if hmac.compare_digest(hash, given)]
        if not known:
            headers = {"WWW-Authenticate": "Bearer"}
            raise Problem(401, "Unauthorized", "send a token: Authorization: Bearer …", headers=headers)
        return known[0]

    def count(self, name: str) -> None:
        """One more request; raises a problem (429) for too many."""
        now = time.monotonic()
        left, then = self._left.get(name, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - then) * self.per_minute / 60)
        if left < 1:
            raise busy((1 - left) * 60 / self.per_minute)
        self._left[name] = left - 1, now

    @contextmanager
    def answering(self, name: str) -> Iterator[None]:
        """While one more answer is written; raises a problem (429) for too many."""
        if self._answers[name] >= self.most_answers:
            raise busy(1, f"{self.most_answers} answers are being written for this token")
        self._answers[name] += 1
        try:
            yield
        finally:
            self._answers[name] -= 1
