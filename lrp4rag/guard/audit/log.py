"""The audit log: what a service writes to and asks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection, select

from lrp4rag.guard.audit.chain import (
    Checkpoint,
    add_checkpoint,
    add_entry,
    add_texts,
    is_erased,
    key_hex,
    named_texts,
    open_key,
    read_texts,
    require_empty,
    require_key_of_log,
)
from lrp4rag.guard.audit.database import ENTRIES, TEXTS, Database, open_database, write_nothing
from lrp4rag.guard.audit.entry import (
    ERASURE,
    EXPIRY,
    JSON,
    Entry,
    as_stored,
    entry_of,
    require_record,
    require_text,
    salted,
    salted_hash,
    stamp,
)
from lrp4rag.guard.audit.verification import Verification, verify
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_output, written_atomically

EVERY = 100
"""Entries from one checkpoint to the next, where there is a key."""
_PAGE = 100
"""Entries that are in memory at once."""


class AuditLog:
    """An append-only chain of records. Threads may share one; processes open the same log each."""

    def __init__(self, database: Database, key: Ed25519PrivateKey | None, *, texts: bool) -> None:
        self._database, self._key, self._texts = database, key, texts
        self._closing = threading.Lock()
        self._open = True

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        key: Path | None = None,
        texts: bool = False,
        read_only: bool = False,
        create: bool = True,
    ) -> AuditLog:
        """Return the log at an SQLAlchemy URL, or in an SQLite file; make a missing log, unless `create` is
        false.

        `key` is the file of the Ed25519 key that signs checkpoints; with an empty log, it is made as well.
        With `texts`, the texts given with records are kept. With `read_only`, nothing is made or written, not
        even a checkpoint. Raises `InputError` for another program's or another version's database, for one
        that cannot be opened or written, for a key that others can read, and for one that is not the log's.
        """
        wanted = None if read_only else key
        if wanted is not None and wanted.exists():
            open_key(wanted)  # a log is not made beside a key that is of no use
        log = cls(open_database(url, read_only=read_only, create=create and not read_only), None, texts=texts)
        if wanted is not None:
            try:
                log._key = log._key_in(wanted)
            except BaseException:
                log.close()
                raise
        return log

    @property
    def files(self) -> list[Path]:
        """The files of an SQLite log, which no output may replace."""
        return self._database.files

    def append(self, record: Mapping[str, JSON], texts: Mapping[str, str] | None = None) -> Entry:
        """Append a record; once this returns, it is on disk.

        The record has an `id` of the caller's, not used before; what texts say does not belong in it. Where
        the log keeps texts, the record gets a salted hash of each, under `texts`.

        Raises `InputError` for a record that is no JSON, is larger than 1 MiB or has another's id, and
        `LRP4RAGError` where the database fails: then nothing is appended.
        """
        checked = require_record(record)
        for name, text in (texts or {}).items():
            require_text(name, text)
        stored = {name: salted(text) for name, text in (texts or {}).items()} if self._texts else {}
        if stored:
            checked["texts"] = {name: salted_hash(**text) for name, text in stored.items()}
        checked = as_stored(checked)
        with self._database.writing() as connection:
            entry = self._add(connection, checked)
            add_texts(connection, entry.id, stored)
        return entry

    def require_writable(self) -> None:
        """Write to the log without adding to it. Raises `LRP4RAGError` where that fails."""
        with self._database.writing() as connection:
            write_nothing(connection)

    def get(self, id: str) -> Entry | None:
        """Return the entry with this id; None where there is none. Raises `LRP4RAGError` where it was
        changed."""
        with self._database.reading() as connection:
            return _find(connection, id)

    def texts(self, id: str) -> dict[str, str]:
        """Return the texts of an entry by name; none where they were not kept, were erased or have expired.
        Raises `LRP4RAGError` for one that was changed.
        """
        with self._database.reading() as connection:
            entry = _find(connection, id)
            return {} if entry is None else read_texts(connection, [entry]).get(id, {})

    def texts_named(self, name: str, entries: Iterable[Entry]) -> dict[str, str]:
        """Return the text of one name of several entries, by their ids, where the log has it. Raises as
        `texts`."""
        with self._database.reading() as connection:
            return {id: texts[name] for id, texts in read_texts(connection, entries, name).items()}

    def entries(
        self,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        kinds: Collection[str] | None = None,
        after: int = 0,
    ) -> Iterator[Entry]:
        """Yield the entries in order: those not older than a moment, those older than another, those of some
        kinds, and those after a sequence number."""
        chosen = select(ENTRIES).order_by(ENTRIES.c.sequence).limit(_PAGE)
        if since is not None:
            chosen = chosen.where(ENTRIES.c.time >= stamp(since))
        if until is not None:
            chosen = chosen.where(ENTRIES.c.time < stamp(until))
        if kinds is not None:
            chosen = chosen.where(ENTRIES.c.kind.in_(kinds))
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(chosen.where(ENTRIES.c.sequence > after)).all()
            yield from map(entry_of, rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1].sequence

    def latest(self, kinds: Collection[str], *, before: int | None = None, limit: int = _PAGE) -> list[Entry]:
        """Return the last entries of some kinds, or the last before a sequence number, the newest first."""
        chosen = select(ENTRIES).where(ENTRIES.c.kind.in_(kinds))
        if before is not None:
            chosen = chosen.where(ENTRIES.c.sequence < before)
        with self._database.reading() as connection:
            rows = connection.execute(chosen.order_by(ENTRIES.c.sequence.desc()).limit(limit)).all()
        return list(map(entry_of, rows))

    def export(self, path: str | Path) -> int:
        """Write all entries to a file as JSON Lines, whole or not at all; returns how many they are.

        Each line is canonical JSON; without `hash`, it is what that is the SHA-256 of.
        """
        count = 0
        with written_atomically(check_output(path, self.files)) as stream:
            for entry in self.entries():
                stream.write(entry.line + b"\n")
                count += 1
        return count

    def erase(self, id: str) -> int:
        """Delete the texts of an entry, and their salts; append an entry that says so; return how many texts
        they were. Raises `InputError` where there is no such entry."""
        with self._database.writing() as connection:
            row = connection.execute(select(ENTRIES).where(ENTRIES.c.id == id)).one_or_none()
            if row is None:
                raise InputError("the log has no entry with this id", field="id")
            count = connection.execute(TEXTS.delete().where(TEXTS.c.id == id)).rowcount
            if count or (named_texts(row.record) and not is_erased(connection, row.sequence)):
                self._add(connection, {"id": uuid.uuid4().hex, "kind": ERASURE, "of": id})
        self._database.forget_erased()
        return count

    def expire(self, before: datetime) -> int:
        """Delete the texts of all entries older than a moment; append an entry that says so, unless there
        were none; return how many texts they were."""
        moment = stamp(before)
        old = select(ENTRIES.c.id).where(ENTRIES.c.time < moment)
        with self._database.writing() as connection:
            count = connection.execute(TEXTS.delete().where(TEXTS.c.id.in_(old))).rowcount
            if count:
                self._add(connection, {"id": uuid.uuid4().hex, "kind": EXPIRY, "before": moment})
        self._database.forget_erased()
        return count

    def checkpoint(self) -> Checkpoint:
        """Sign the head of the chain, and store the checkpoint. Raises `InputError` without a key,
        `LRP4RAGError` where the log is empty."""
        if self._key is None:
            raise InputError("a checkpoint is signed: the log needs a key", field="key")
        with self._database.writing() as connection:
            return _signed(connection, self._key)

    def verify(
        self, public_key: Ed25519PublicKey | None = None, checkpoint: Checkpoint | None = None
    ) -> Verification:
        """Read all of the log, and report what was changed. Raises `LRP4RAGError` where it cannot be read.

        `public_key` is the one that checkpoints must be signed by (by default the log's own, if it was opened
        with one), `checkpoint` one that was kept elsewhere.
        """
        if public_key is None and self._key is not None:
            public_key = self._key.public_key()
        with self._database.reading() as connection:
            return verify(connection, None if public_key is None else key_hex(public_key), checkpoint)

    def close(self) -> None:
        """Sign the head, where there are a key and an entry, and close the connections."""
        with self._closing:
            if not self._open:
                return
            self._open = False
        try:
            if self._key is not None:
                with self._database.writing() as connection:
                    if connection.scalar(select(ENTRIES.c.sequence).limit(1)) is not None:
                        _signed(connection, self._key)
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, connection: Connection, record: dict[str, Any]) -> Entry:
        entry = add_entry(connection, record)
        if self._key is not None and entry.sequence % EVERY == 0:
            _signed(connection, self._key)
        return entry

    def _key_in(self, path: Path) -> Ed25519PrivateKey:
        """Return the log's key in a file; make a missing file for an empty log."""
        with self._database.reading() as connection:
            if not path.exists():
                require_empty(connection, path)
            key = open_key(path)
            require_key_of_log(connection, key)
        return key


def _signed(connection: Connection, key: Ed25519PrivateKey) -> Checkpoint:
    """Sign the head, and return the checkpoint. Raises `InputError` where another key signed the log since it
    was opened."""
    require_key_of_log(connection, key)
    return add_checkpoint(connection, key)


def _find(connection: Connection, id: str) -> Entry | None:
    row = connection.execute(select(ENTRIES).where(ENTRIES.c.id == id)).one_or_none()
    return None if row is None else entry_of(row)
