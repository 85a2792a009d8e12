"""Entries and checkpoints added at the head, each within a writer's transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, Row, exists, select

from lrp4rag.guard.audit.canonical import digest
from lrp4rag.guard.audit.checkpoint import Checkpoint, sign
from lrp4rag.guard.audit.entry import NOTHING, Entry, chained, row_of, stamp
from lrp4rag.guard.audit.keys import key_hex
from lrp4rag.guard.audit.tables import CHECKPOINTS, ENTRIES, HEAD
from lrp4rag.util.errors import InputError, LRP4RAGError


def add_entry(connection: Connection, record: dict[str, Any]) -> Entry:
    """Append a record. Raises `InputError` where there is one with its id."""
    head = _locked_head(connection)
    if connection.scalar(select(exists().where(ENTRIES.c.id == record["id"]))):
        raise InputError("the log has an entry with this id already", field="id")
    entry = chained(head.entries + 1, head.hash, record)
    connection.execute(ENTRIES.insert().values(row_of(entry)))
    connection.execute(HEAD.update().values(entries=entry.sequence, hash=entry.hash))
    return entry


def add_checkpoint(connection: Connection, key: Ed25519PrivateKey) -> Checkpoint:
    """Sign the head, unless its last checkpoint is this key's already. Raises `LRP4RAGError` where there is
    no entry yet."""
    head = _locked_head(connection)
    if head.entries == 0:
        raise LRP4RAGError("the log is empty: there is nothing to sign yet")
    newest = select(CHECKPOINTS.c.checkpoint).order_by(CHECKPOINTS.c.number.desc()).limit(1)
    last = connection.scalar(newest)
    if last is not None and (found := _still_holds(last, head, key)):
        return found
    checkpoint = sign(
        key,
        number=head.checkpoints + 1,
        previous=NOTHING if last is None else digest(str(last).encode("utf-8", "surrogateescape")),
        sequence=head.entries,
        hash=head.hash,
        time=stamp(),
    )
    connection.execute(CHECKPOINTS.insert().values(number=checkpoint.number, checkpoint=checkpoint.text))
    connection.execute(HEAD.update().values(checkpoints=checkpoint.number))
    return checkpoint


def require_key_of_log(connection: Connection, key: Ed25519PrivateKey) -> None:
    """Raise `InputError` for another key than the one that signed the log's first checkpoint: a log has one
    key, so that its checkpoints would count as forged. A checkpoint that is none any more names no key; that
    it was changed is for `verify` to tell."""
    first = connection.scalar(select(CHECKPOINTS.c.checkpoint).order_by(CHECKPOINTS.c.number).limit(1))
    try:
        named = None if first is None else Checkpoint.stored(first).key
    except ValueError:
        return
    mine = key_hex(key.public_key())
    if named not in (None, mine):
        raise InputError(
            f"this is key {mine[:16]}…, and the log is signed by {named[:16]}…: name the file of the log's "
            "own key; for another key, start a new log",
            field="key",
        )


def require_empty(connection: Connection, path: Path) -> None:
    """Raise `InputError` where the log has entries: a key that is missing then is another's, or mistyped."""
    if connection.scalar(select(ENTRIES.c.sequence).limit(1)) is not None:
        raise InputError(
            "there is no key here, and the log has entries already: name the file of its key, or, if it was "
            f"never signed, make one with `lrp4rag audit key --key {path}`",
            path=path,
        )


def _locked_head(connection: Connection) -> Row[Any]:
    head = connection.execute(select(HEAD).with_for_update()).one_or_none()
    if head is None or not all(isinstance(count, int) for count in (head.entries, head.checkpoints)):
        raise LRP4RAGError("the head of the log was changed: run lrp4rag audit verify, and restore a backup")
    return head


def _still_holds(text: str, head: Row[Any], key: Ed25519PrivateKey) -> Checkpoint | None:
    try:
        last = Checkpoint.stored(text)
    except ValueError:
        return None
    same = (last.sequence, last.hash, last.key) == (head.entries, head.hash, key_hex(key.public_key()))
    return last if same and last.signed else None
