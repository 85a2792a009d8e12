"""Verify that a log is as it was written: every entry, every checkpoint, every stored text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from lrp4rag.guard.audit.chain import Checkpoint, is_erased, named_texts
from lrp4rag.guard.audit.database import CHECKPOINTS, ENTRIES, HEAD, TEXTS
from lrp4rag.guard.audit.entry import NOTHING, entry_hash, read_canonical, salted_hash, searched
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.text import one_line

_AT_ONCE = 50
"""Rows that are in memory at once."""


@dataclass(frozen=True)
class Problem:
    """Something that was changed, at an entry where one is known, and what to do."""

    sequence: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.sequence is None else f"entry {self.sequence}: {self.what}"


@dataclass
class Verification:
    """The part of a log that was read. `head` is the hash of the last entry, `last` the last checkpoint of
    the key, `key` the public key in hexadecimal; `pinned` whether the verifier brought that, and it is not
    merely the one that the checkpoints name."""

    key: str | None
    pinned: bool
    entries: int = 0
    head: str = NOTHING
    checkpoints: int = 0
    last: Checkpoint | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not self.problems

    @property
    def unsigned(self) -> int:
        """The number of entries after the last checkpoint."""
        return max(0, self.entries - (self.last.sequence if self.last else 0))


def streamed(connection: Connection, statement: Select[Any]) -> Iterator[Row[Any]]:
    """Yield the rows; a few of them are in memory at a time."""
    return iter(connection.execute(statement, execution_options={"yield_per": _AT_ONCE}))


_COMPARE = "compare it with an export or a backup"


def check_entries(connection: Connection, result: Verification) -> Iterator[Problem]:
    """Yield the problems of all entries and of their texts, in the order of the entries."""
    joined = (
        select(*ENTRIES.c, TEXTS.c.name, TEXTS.c.salt, TEXTS.c.text)
        .outerjoin(TEXTS, TEXTS.c.id == ENTRIES.c.id)
        .order_by(ENTRIES.c.sequence, TEXTS.c.name)
    )
    expected = 1
    for sequence, group in groupby(streamed(connection, joined), key=lambda row: row.sequence):
        row = next(group)
        texts = [text for text in (row, *group) if text.name is not None]
        stored = {text.name: salted_hash(text.salt, text.text) for text in texts}
        named = named_texts(row.record)
        problems = [*_check_entry(row, expected, result.head)]
        if stored or named:
            problems += _check_texts(named, stored, erased=is_erased(connection, sequence))
        yield from (Problem(sequence, what) for what in problems)
        result.entries, result.head, expected = result.entries + 1, str(row.hash), sequence + 1


def check_strays(connection: Connection) -> Iterator[Problem]:
    """Yield a problem for each text without an entry."""
    strays = (
        select(TEXTS.c.id, TEXTS.c.name)
        .outerjoin(ENTRIES, ENTRIES.c.id == TEXTS.c.id)
        .where(ENTRIES.c.id.is_(None))
    )
    for row in streamed(connection, strays):
        what = f"the text '{_shown(row.name)}' is of '{_shown(row.id)}', which is no entry: restore a backup"
        yield Problem(None, what)


def _check_entry(row: Row[Any], expected: int, previous: str) -> Iterator[str]:
    if row.sequence != expected:
        yield f"entries from {expected} on are missing before it, or it was renumbered: restore a backup"
    if row.previous != previous:
        yield f"it does not follow the entry before, so one was changed, put in or moved: {_COMPARE}"
    try:
        record = read_canonical(row.record)
        columns = searched(record)
        fits = row.hash == entry_hash(row.sequence, row.time, row.previous, record)
    except (ValueError, KeyError, AttributeError):
        yield f"it was changed, and is no canonical JSON any more: {_COMPARE}"
        return
    if not fits:
        yield f"its content does not have its hash, so one of the two was changed: {_COMPARE}"
    for name, value in columns.items():
        if getattr(row, name) != value:
            yield f"the column '{name}' was changed, its record says otherwise: {_COMPARE}"


def _check_texts(named: dict[str, Any], stored: dict[Any, str | None], *, erased: bool) -> Iterator[str]:
    if erased and stored:
        yield "its texts were erased, and are there again: erase them"
    for name in stored.keys() - named.keys():
        yield f"the text '{_shown(name)}' was put in, its record names none such: delete it"
    for name, expected in named.items():
        if name not in stored:
            if not erased:
                yield f"the text '{_shown(name)}' is missing, and was not erased: restore a backup"
        elif stored[name] != expected:
            yield f"the text '{_shown(name)}' does not have its hash, so it was changed: restore a backup"


def _shown(name: object) -> str:
    return one_line(str(name), 60)


def check_checkpoints(connection: Connection, result: Verification) -> Iterator[Problem]:
    """Yield the problems of all checkpoints in order. Without a key, that of the first checkpoint counts."""
    previous, expected = NOTHING, 1
    for row in streamed(connection, select(CHECKPOINTS).order_by(CHECKPOINTS.c.number)):
        for what in _check_checkpoint(connection, row, expected, previous, result):
            yield Problem(None, f"checkpoint {row.number}: {what}")
        previous = hash_of(str(row.checkpoint).encode("utf-8", "surrogateescape"))
        result.checkpoints, expected = result.checkpoints + 1, row.number + 1


def check_outside(connection: Connection, result: Verification, outside: Checkpoint) -> Iterator[Problem]:
    """Yield the problems with a checkpoint that was kept elsewhere, read after all others."""
    if not outside.signed or outside.key != (result.key or outside.key):
        yield Problem(None, "the checkpoint kept elsewhere is not of the log's key: give this log's")
        return
    hash = _hash_at(connection, outside.sequence)
    if hash is None:
        what = f"the log was cut: it ends at entry {result.entries}, and entry {outside.sequence} was signed"
        yield Problem(None, f"{what} by the checkpoint kept elsewhere; restore a backup")
    elif hash != outside.hash:
        what = "it is not the one that the checkpoint kept elsewhere signs, so the chain was rewritten"
        yield Problem(outside.sequence, f"{what}: restore a backup")
    stored = connection.scalar(select(CHECKPOINTS.c.checkpoint).where(CHECKPOINTS.c.number == outside.number))
    if stored != outside.text:
        what = "it is missing, or another than the one kept elsewhere: restore a backup"
        yield Problem(None, f"checkpoint {outside.number}: {what}")


def _check_checkpoint(
    connection: Connection, row: Row[Any], expected: int, previous: str, result: Verification
) -> Iterator[str]:
    if row.number != expected:
        yield f"those from {expected} on are missing before it, or it was renumbered: restore a backup"
    try:
        checkpoint = Checkpoint.stored(row.checkpoint)
    except ValueError:
        yield "it was changed, and is no checkpoint any more: restore a backup"
        return
    if checkpoint.number != row.number:
        yield "its number was changed: restore a backup"
    if checkpoint.previous != previous:
        yield "it does not follow the one before, so one was changed, put in or moved: restore a backup"
    result.key = result.key or checkpoint.key
    if checkpoint.key != result.key or not checkpoint.signed:
        yield "it is not signed by the log's key, so it was forged or changed: do not trust what it signs"
        return
    result.last = checkpoint
    hash = _hash_at(connection, checkpoint.sequence)
    if hash != checkpoint.hash:
        state = "missing" if hash is None else "another"
        yield f"entry {checkpoint.sequence}, which it signs, is {state}: the chain was cut or rewritten"


def _hash_at(connection: Connection, sequence: int) -> object:
    return connection.scalar(select(ENTRIES.c.hash).where(ENTRIES.c.sequence == sequence))


MOST = 1000
"""Problems that are reported; after them the reading ends."""


def verify(connection: Connection, pinned: str | None, outside: Checkpoint | None) -> Verification:
    """Read a log within one transaction. Memory does not grow with it."""
    result = Verification(pinned, pinned is not None)
    result.problems += islice(_problems(connection, result, outside), MOST)
    if len(result.problems) == MOST:
        result.problems.append(Problem(None, f"the reading ended after {MOST:,} problems: restore a backup"))
    return result


def _problems(connection: Connection, result: Verification, outside: Checkpoint | None) -> Iterator[Problem]:
    if connection.dialect.name == "sqlite":
        for (report,) in connection.exec_driver_sql("PRAGMA integrity_check(10)"):
            if report != "ok":
                yield Problem(None, f"the file is damaged ({report}): keep a copy, and restore a backup")
    yield from check_entries(connection, result)
    yield from check_strays(connection)
    yield from check_checkpoints(connection, result)
    yield from _check_head(connection, result)
    if outside is not None:
        yield from check_outside(connection, result, outside)


def _check_head(connection: Connection, result: Verification) -> Iterator[Problem]:
    columns = (HEAD.c.one, HEAD.c.entries, HEAD.c.hash, HEAD.c.checkpoints)
    rows = connection.execute(select(*columns).limit(2)).all()
    if [tuple(row) for row in rows] != [(1, result.entries, result.head, result.checkpoints)]:
        yield Problem(
            None,
            "the head names another last entry or checkpoint than there is, so the newest were cut off or "
            "put in, or the head was changed: compare with an export or a backup",
        )
