"""Whether entries follow each other as they were written, and texts are those that they name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from lrp4rag.guard.audit.canonical import read_canonical
from lrp4rag.guard.audit.entry import entry_hash, searched
from lrp4rag.guard.audit.salted import salted_hash
from lrp4rag.guard.audit.tables import ENTRIES, TEXTS
from lrp4rag.guard.audit.texts import is_erased, named_texts
from lrp4rag.guard.audit.verification import Problem, Read, streamed
from lrp4rag.util.text import one_line

_COMPARE = "compare it with an export or a backup"


def check_entries(connection: Connection, read: Read) -> Iterator[Problem]:
    """The problems of all entries in order, each with its texts beside it."""
    joined = (
        select(*ENTRIES.c, TEXTS.c.name, TEXTS.c.salt, TEXTS.c.text)
        .outerjoin(TEXTS, TEXTS.c.id == ENTRIES.c.id)
        .order_by(ENTRIES.c.sequence, TEXTS.c.name)
    )
    expected = 1
    for sequence, group in groupby(streamed(connection, joined), key=lambda row: row.sequence):
        row = next(group)
        kept = {one.name: salted_hash(one.salt, one.text) for one in (row, *group) if one.name is not None}
        named = named_texts(row.record)
        found = [*_check_entry(row, expected, read.head)]
        if kept or named:
            found += _check_texts(named, kept, erased=is_erased(connection, sequence))
        yield from (Problem(sequence, what) for what in found)
        read.entries, read.head, expected = read.entries + 1, str(row.hash), sequence + 1


def check_strays(connection: Connection) -> Iterator[Problem]:
    """The texts of which there is no entry."""
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


def _check_texts(named: dict[str, Any], kept: dict[Any, str | None], *, erased: bool) -> Iterator[str]:
    if erased and kept:
        yield "its texts were erased, and are there again: erase them"
    for name in kept.keys() - named.keys():
        yield f"the text '{_shown(name)}' was put in, its record names none such: delete it"
    for name, expected in named.items():
        if name not in kept:
            if not erased:
                yield f"the text '{_shown(name)}' is missing, and was not erased: restore a backup"
        elif kept[name] != expected:
            yield f"the text '{_shown(name)}' does not have its hash, so it was changed: restore a backup"


def _shown(name: object) -> str:
    return one_line(str(name), 60)
