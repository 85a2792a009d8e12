"""An entry of the chain, and what its hash is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from lrp4rag.guard.audit.canonical import JSON, canonical, digest, read_canonical, require_json
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.text import one_line

NOTHING = "0" * 64
"""What the first entry, and the first checkpoint, names as the one before."""
ERASURE, EXPIRY = "erasure", "expiry"
"""Kinds of entries that only the log itself writes: texts of one entry, or of all before a time, deleted."""
LARGEST = 2**20
"""Bytes of a record."""
LONGEST_NAME = 200
"""Characters of an id, of a kind, and of a text's name: PostgreSQL indexes no long ones."""


@dataclass(frozen=True)
class Entry:
    """A record in its place in the chain. `time` is UTC, in ISO 8601 with microseconds."""

    sequence: int
    time: str
    previous: str
    hash: str
    record: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def kind(self) -> str | None:
        return self.record.get("kind")

    @property
    def line(self) -> bytes:
        """The entry as a line of canonical JSON; without `hash`, it is what the hash is of."""
        return canonical({**_hashed(self.sequence, self.time, self.previous, self.record), "hash": self.hash})


def chained(sequence: int, previous: str, record: dict[str, Any]) -> Entry:
    """The entry that holds the record, now."""
    time = stamp()
    return Entry(sequence, time, previous, entry_hash(sequence, time, previous, record), record)


def entry_hash(sequence: int, time: str, previous: str, record: dict[str, Any]) -> str:
    return digest(canonical(_hashed(sequence, time, previous, record)))


def _hashed(sequence: int, time: str, previous: str, record: dict[str, Any]) -> dict[str, JSON]:
    return {"sequence": sequence, "time": time, "previous": previous, "record": record}


def row_of(entry: Entry) -> dict[str, Any]:
    """The entry as a row of its table."""
    return {
        **searched(entry.record),
        **{name: getattr(entry, name) for name in ("sequence", "time", "previous", "hash")},
        "record": canonical(entry.record).decode(),
    }


def entry_of(row: Row[Any]) -> Entry:
    """The entry in a row. Raises `LRP4RAGError` where it does not have its hash."""
    try:
        record = read_canonical(row.record)
        intact = entry_hash(row.sequence, row.time, row.previous, record) == row.hash
    except ValueError:
        intact = False
    if not intact:
        raise LRP4RAGError(f"entry {row.sequence} was changed: run lrp4rag audit verify")
    return Entry(row.sequence, row.time, row.previous, row.hash, record)


def searched(record: dict[str, Any]) -> dict[str, Any]:
    """What is repeated in columns."""
    kind = record.get("kind")
    subject = {ERASURE: "of", EXPIRY: "before"}.get(str(kind))
    return {"id": record["id"], "kind": kind, "subject": record.get(subject) if subject else None}


def require_record(record: Mapping[str, JSON]) -> dict[str, Any]:
    """The record as plain JSON. Raises `InputError` for what is none, or is none of a caller's: with an id
    that is no text, of a kind that the log itself writes, with hashes of texts."""
    if not isinstance(record, Mapping):
        raise InputError("a record is an object of JSON", field="record")
    checked: Any = require_json(record, "record")
    _require_name(checked.get("id"), "id")
    if "kind" in checked:
        _require_name(checked["kind"], "kind")
    if checked.get("kind") in (ERASURE, EXPIRY):
        raise InputError("the log itself writes entries of this kind", field="kind")
    if "texts" in checked:
        raise InputError("hashes of texts are put here; give the texts themselves", field="texts")
    return dict(checked)


def require_size(record: dict[str, Any]) -> dict[str, Any]:
    """The record, as it will be read. Raises `InputError` where it is too large."""
    text = canonical(record)
    if len(text) > LARGEST:
        raise InputError(f"{len(text):,} bytes, and at most {LARGEST:,} are recorded", field="record")
    return dict(read_canonical(text.decode()))


def _require_name(value: object, field: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise InputError(f"must be a text of 1 to {LONGEST_NAME} characters", field=field)
    if "\0" in value:
        raise InputError("must not hold U+0000", field=field)


def require_text(name: object, text: object) -> None:
    """Raise `InputError` for a text, or a text's name, that cannot be kept."""
    _require_name(name, "texts")
    shown = f"texts.{one_line(str(name), 60)}"
    if not isinstance(text, str):
        raise InputError("must be text", field=shown)
    require_json({str(name): text}, "texts")


def stamp(moment: datetime | None = None) -> str:
    """A moment (by default now) in UTC, ISO 8601 with microseconds. Texts of it sort as the moments do.

    Raises `InputError` for one without a time zone.
    """
    moment = datetime.now(UTC) if moment is None else moment
    if moment.tzinfo is None:
        raise InputError("a time needs a time zone, such as datetime.now(UTC)")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
