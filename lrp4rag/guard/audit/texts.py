"""The texts behind an entry: kept beside the chain, and deleted without breaking it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, exists, or_, select

from lrp4rag.guard.audit.canonical import read_canonical
from lrp4rag.guard.audit.entry import ERASURE, EXPIRY, Entry
from lrp4rag.guard.audit.salted import Salted, salted_hash
from lrp4rag.guard.audit.tables import ENTRIES, TEXTS
from lrp4rag.util.errors import LRP4RAGError

_THIS, _LATER = ENTRIES.alias(), ENTRIES.alias()
_ERASED = select(
    exists().where(
        _THIS.c.sequence == bindparam("sequence"),
        _LATER.c.sequence > _THIS.c.sequence,
        or_(
            and_(_LATER.c.kind == ERASURE, _LATER.c.subject == _THIS.c.id),
            and_(_LATER.c.kind == EXPIRY, _LATER.c.subject > _THIS.c.time),
        ),
    )
)


def add_texts(connection: Connection, id: str, texts: Mapping[str, Salted]) -> None:
    for name, one in texts.items():
        connection.execute(TEXTS.insert().values(id=id, name=name, salt=one.salt, text=one.text))


def read_texts(connection: Connection, entry: Entry) -> dict[str, str]:
    """The texts by name. Raises `LRP4RAGError` for one that does not have its hash in the record."""
    rows = connection.execute(select(TEXTS).where(TEXTS.c.id == entry.id).order_by(TEXTS.c.name)).all()
    return {row.name: _checked(row, entry) for row in rows}


def read_named(connection: Connection, entries: Iterable[Entry], name: str) -> dict[str, str]:
    """The text of one name of several entries, by their ids. Raises as `read_texts` does."""
    known = {entry.id: entry for entry in entries}
    rows = connection.execute(select(TEXTS).where(TEXTS.c.name == name, TEXTS.c.id.in_(known)))
    return {row.id: _checked(row, known[row.id]) for row in rows}


def _checked(row: Row[Any], entry: Entry) -> str:
    if salted_hash(row.salt, row.text) != entry.record.get("texts", {}).get(row.name):
        raise LRP4RAGError("a text of this entry was changed: run lrp4rag audit verify")
    return str(read_canonical(row.text))


def delete_texts(connection: Connection, which: ColumnElement[bool]) -> int:
    return connection.execute(TEXTS.delete().where(which)).rowcount


def named_texts(record: object) -> dict[str, Any]:
    """The hashes of texts in a record as it is stored; none where it was damaged."""
    try:
        return dict(read_canonical(record).get("texts", {}))
    except (ValueError, TypeError, AttributeError):
        return {}


def is_erased(connection: Connection, sequence: int) -> bool:
    """Whether a later entry says that this one's texts were deleted."""
    return bool(connection.scalar(_ERASED, {"sequence": sequence}))
