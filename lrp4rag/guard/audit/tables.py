"""The four tables of an audit log. Columns beside a canonical text repeat what is in it, for searches."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text

APPLICATION = "lrp4rag audit log"
VERSION = 1

_LARGE = BigInteger().with_variant(Integer, "sqlite")  # SQLite's are of 8 bytes

METADATA = MetaData()

HEAD = Table(
    "audit_head",
    METADATA,
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("application", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("entries", _LARGE, nullable=False),
    Column("hash", Text, nullable=False),
    Column("checkpoints", _LARGE, nullable=False),
)
"""One row, which writers lock: how many entries and checkpoints there are, and the last entry's hash."""

ENTRIES = Table(
    "audit_entries",
    METADATA,
    Column("sequence", _LARGE, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("time", Text, nullable=False),
    Column("kind", Text),
    Column("subject", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("record", Text, nullable=False),
    Index("audit_entries_time", "time"),
    Index("audit_entries_subject", "kind", "subject"),
)

TEXTS = Table(
    "audit_texts",
    METADATA,
    Column("id", Text, ForeignKey(ENTRIES.c.id), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("salt", Text, nullable=False),
    Column("text", Text, nullable=False),
)
"""What may be erased. `text` is a JSON string: PostgreSQL's texts cannot hold U+0000."""

CHECKPOINTS = Table(
    "audit_checkpoints",
    METADATA,
    Column("number", _LARGE, primary_key=True, autoincrement=False),
    Column("checkpoint", Text, nullable=False),
)
