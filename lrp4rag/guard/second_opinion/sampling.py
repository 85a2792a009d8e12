"""`Sampler`: which answers a second opinion is asked about."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Literal

Chosen = Literal["escalated", "sampled"]

SHORTEST_KEY = 16


def lot(key: bytes, decision: str) -> int:
    """Return a number below 2^64 for the id of a decision, as if drawn at random, and always the same for a
    key."""
    digest = hmac.digest(key, decision.encode(errors="surrogatepass"), hashlib.sha256)
    return int.from_bytes(digest[:8])


@dataclass(frozen=True, slots=True)
class Sampler:
    """All escalated answers, and of the others a `share` between 0 and 1.

    Which ones follows from the id and a secret `key` of at least 16 bytes: so it can be told again later, on
    another machine too, while nobody without the key can tell which answers go unwatched. What is chosen by a
    share is chosen by every larger one. Raises `ValueError` for another share, or a shorter key.
    """

    key: bytes = field(repr=False)
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError("share: give a number from 0 to 1")
        if len(self.key) < SHORTEST_KEY:
            raise ValueError(f"key: give at least {SHORTEST_KEY} random bytes")

    def chosen(self, decision: str, *, escalated: bool) -> Chosen | None:
        """Why a second opinion on the answer with this id of its decision is asked for; None for not at all.

        "sampled" ones stand for all that were not escalated; escalated ones stand for themselves only.
        """
        if escalated:
            return "escalated"
        return "sampled" if lot(self.key, decision) < self.share * 2**64 else None
