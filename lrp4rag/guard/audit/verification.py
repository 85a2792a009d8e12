"""What reading a whole log finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select

from lrp4rag.guard.audit.checkpoint import Checkpoint
from lrp4rag.guard.audit.entry import NOTHING

_AT_ONCE = 50
"""Rows that are in memory at once."""


@dataclass(frozen=True)
class Problem:
    """Something that was changed, at an entry where one is known, and what to do."""

    sequence: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.sequence is None else f"entry {self.sequence}: {self.what}"


@dataclass(frozen=True)
class Verification:
    """What was read of a log. `head` is the hash of the last entry, `last` the last checkpoint that is of the
    key, `key` the public key in hexadecimal; `pinned` whether the verifier brought that, and it is not merely
    the one that the checkpoints name."""

    entries: int
    head: str
    checkpoints: int
    last: Checkpoint | None
    key: str | None
    pinned: bool
    problems: list[Problem]

    @property
    def whole(self) -> bool:
        return not self.problems

    @property
    def unsigned(self) -> int:
        """How many entries come after the last checkpoint."""
        return max(0, self.entries - (self.last.sequence if self.last else 0))


@dataclass
class Read:
    """What was read so far."""

    entries: int = 0
    head: str = NOTHING
    checkpoints: int = 0
    last: Checkpoint | None = None
    key: str | None = None


def streamed(connection: Connection, statement: Select[Any]) -> Iterator[Row[Any]]:
    """The rows, a few of them in memory."""
    return iter(connection.execute(statement, execution_options={"yield_per": _AT_ONCE}))
