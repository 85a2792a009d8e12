"""Whether a log is as it was written: every entry, every checkpoint, every text that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sqlalchemy import Connection, select

from lrp4rag.guard.audit.checkpoint import Checkpoint
from lrp4rag.guard.audit.checkpoint_checks import check_checkpoints, check_outside
from lrp4rag.guard.audit.entry_checks import check_entries, check_strays
from lrp4rag.guard.audit.tables import HEAD
from lrp4rag.guard.audit.verification import Problem, Read, Verification

MOST = 1000
"""Problems that are told; after them the reading ends."""


def verify(connection: Connection, pinned: str | None, outside: Checkpoint | None) -> Verification:
    """Read a log within one transaction. Memory does not grow with it."""
    read = Read(key=pinned)
    found = list(islice(_problems(connection, read, outside), MOST))
    if len(found) == MOST:
        found.append(Problem(None, f"the reading ended after {MOST:,} problems: restore a backup"))
    return Verification(**vars(read), pinned=pinned is not None, problems=found)


def _problems(connection: Connection, read: Read, outside: Checkpoint | None) -> Iterator[Problem]:
    if connection.dialect.name == "sqlite":
        for (said,) in connection.exec_driver_sql("PRAGMA integrity_check(10)"):
            if said != "ok":
                yield Problem(None, f"the file is damaged ({said}): keep a copy, and restore a backup")
    yield from check_entries(connection, read)
    yield from check_strays(connection)
    yield from check_checkpoints(connection, read)
    yield from _check_head(connection, read)
    if outside is not None:
        yield from check_outside(connection, read, outside)


def _check_head(connection: Connection, read: Read) -> Iterator[Problem]:
    columns = (HEAD.c.one, HEAD.c.entries, HEAD.c.hash, HEAD.c.checkpoints)
    heads = connection.execute(select(*columns).limit(2)).all()
    if [tuple(head) for head in heads] != [(1, read.entries, read.head, read.checkpoints)]:
        yield Problem(
            None,
            "the head names another last entry or checkpoint than there is, so the newest were cut off or "
            "put in, or the head was changed: compare with an export or a backup",
        )
