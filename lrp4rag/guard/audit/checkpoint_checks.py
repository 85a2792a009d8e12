"""Whether checkpoints follow each other, are signed by the key, and are of entries as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, select

from lrp4rag.guard.audit.canonical import digest
from lrp4rag.guard.audit.checkpoint import Checkpoint
from lrp4rag.guard.audit.entry import NOTHING
from lrp4rag.guard.audit.tables import CHECKPOINTS, ENTRIES
from lrp4rag.guard.audit.verification import Problem, Read, streamed


def check_checkpoints(connection: Connection, read: Read) -> Iterator[Problem]:
    """The problems of all checkpoints in order. Without a key, theirs is the one of the first."""
    previous, expected = NOTHING, 1
    for row in streamed(connection, select(CHECKPOINTS).order_by(CHECKPOINTS.c.number)):
        for what in _check_checkpoint(connection, row, expected, previous, read):
            yield Problem(None, f"checkpoint {row.number}: {what}")
        previous = digest(str(row.checkpoint).encode("utf-8", "surrogateescape"))
        read.checkpoints, expected = read.checkpoints + 1, row.number + 1


def check_outside(connection: Connection, read: Read, outside: Checkpoint) -> Iterator[Problem]:
    """The problems with a checkpoint that was kept elsewhere, after all others were read."""
    if not outside.signed or outside.key != (read.key or outside.key):
        yield Problem(None, "the checkpoint kept elsewhere is not of the log's key: give this log's")
        return
    hash = _hash_at(connection, outside.sequence)
    if hash is None:
        what = f"the log was cut: it ends at entry {read.entries}, and entry {outside.sequence} was signed"
        yield Problem(None, f"{what} by the checkpoint kept elsewhere; restore a backup")
    elif hash != outside.hash:
        what = "it is not the one that the checkpoint kept elsewhere signs, so the chain was rewritten"
        yield Problem(outside.sequence, f"{what}: restore a backup")
    stored = connection.scalar(select(CHECKPOINTS.c.checkpoint).where(CHECKPOINTS.c.number == outside.number))
    if stored != outside.text:
        what = "it is missing, or another than the one kept elsewhere: restore a backup"
        yield Problem(None, f"checkpoint {outside.number}: {what}")


def _check_checkpoint(
    connection: Connection, row: Row[Any], expected: int, previous: str, read: Read
) -> Iterator[str]:
    if row.number != expected:
        yield f"those from {expected} on are missing before it, or it was renumbered: restore a backup"
    try:
        found = Checkpoint.stored(row.checkpoint)
    except ValueError:
        yield "it was changed, and is no checkpoint any more: restore a backup"
        return
    if found.number != row.number:
        yield "its number was changed: restore a backup"
    if found.previous != previous:
        yield "it does not follow the one before, so one was changed, put in or moved: restore a backup"
    read.key = read.key or found.key
    if found.key != read.key or not found.signed:
        yield "it is not signed by the log's key, so it was forged or changed: do not trust what it signs"
        return
    read.last = found
    hash = _hash_at(connection, found.sequence)
    if hash != found.hash:
        state = "missing" if hash is None else "another"
        yield f"entry {found.sequence}, which it signs, is {state}: the chain was cut or rewritten"


def _hash_at(connection: Connection, sequence: int) -> object:
    return connection.scalar(select(ENTRIES.c.hash).where(ENTRIES.c.sequence == sequence))
