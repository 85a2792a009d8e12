"""Entries of the chain: canonical JSON (RFC 8785), salted hashes of texts, and what a hash is of."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import rfc8785
from sqlalchemy import Row

from lrp4rag.util.errors import InputError, LRP4RAGError, first_line
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import parse
from lrp4rag.util.text import one_line, surrogate_in

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None

DEEPEST = 64
"""Levels that objects and lists may stand in each other."""
_SAFE = 2**53
"""The first integer beyond which doubles, JSON's numbers, do not hold each one."""


def canonical(value: JSON) -> bytes:
    """Return the one spelling of a value. Raises `ValueError` for what JSON cannot hold."""
    return rfc8785.dumps(value)


def read_canonical(text: object) -> Any:
    """Return the value in a text of canonical JSON. Raises `ValueError` for anything else: another spelling
    of the same value, a key that stands twice, bytes, text that is not UTF-8."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    try:
        value = parse(text, _as_double)
        same = canonical(value) == text.encode()
    except (RecursionError, OverflowError) as error:
        raise ValueError("not canonical JSON") from error
    if not same:
        raise ValueError("JSON, but not in its canonical spelling")
    return value


def _as_double(digits: str) -> float:
    """Read an integer as a float where doubles do not hold it: canonical JSON spells 1e16 with all digits."""
    value = int(digits)
    return value if abs(value) < _SAFE else float(value)


_SALT = re.compile(r"[0-9a-f]{32}")


def salted(text: str) -> dict[str, str]:
    """Return the text as it is stored, with a new `salt` of 16 random bytes: once that is erased, the hash in
    the record says nothing."""
    return {"salt": secrets.token_hex(16), "text": canonical(text).decode()}


def salted_hash(salt: object, text: object) -> str | None:
    """Return the HMAC-SHA256 of a stored text, which the record holds; None where salt or text are
    malformed."""
    if not isinstance(salt, str) or not _SALT.fullmatch(salt):
        return None
    try:
        value = read_canonical(text)
    except ValueError:
        return None
    if not isinstance(value, str):
        return None
    return hmac.new(bytes.fromhex(salt), value.encode(), "sha256").hexdigest()


NOTHING = "0" * 64
"""The hash that the first entry, and the first checkpoint, names as the one before."""
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
        return canonical(vars(self))


def chained(sequence: int, previous: str, record: dict[str, Any]) -> Entry:
    """Return the entry that holds the record, with the present time."""
    time = stamp()
    return Entry(sequence, time, previous, entry_hash(sequence, time, previous, record), record)


def entry_hash(sequence: int, time: str, previous: str, record: dict[str, Any]) -> str:
    content: dict[str, JSON] = {"sequence": sequence, "time": time, "previous": previous, "record": record}
    return hash_of(canonical(content))


def row_of(entry: Entry) -> dict[str, Any]:
    """Return the entry as a row of its table."""
    return {**searched(entry.record), **vars(entry), "record": canonical(entry.record).decode()}


def entry_of(row: Row[Any]) -> Entry:
    """Return the entry in a row. Raises `LRP4RAGError` where it does not have its hash."""
    try:
        record = read_canonical(row.record)
        intact = entry_hash(row.sequence, row.time, row.previous, record) == row.hash
    except ValueError:
        intact = False
    if not intact:
        raise LRP4RAGError(f"entry {row.sequence} was changed: run lrp4rag audit verify")
    return Entry(row.sequence, row.time, row.previous, row.hash, record)


def searched(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that columns repeat."""
    kind = record.get("kind")
    subject = {ERASURE: "of", EXPIRY: "before"}.get(str(kind))
    return {"id": record["id"], "kind": kind, "subject": record.get(subject) if subject else None}


def require_record(record: Mapping[str, JSON]) -> dict[str, Any]:
    """Return a copy of the record. Raises `InputError` for one that is not a caller's: without an id, of a
    kind that the log itself writes, with hashes of texts."""
    if not isinstance(record, Mapping):
        raise InputError("a record is an object of JSON", field="record")
    _require_name(record.get("id"), "id")
    if "kind" in record:
        _require_name(record["kind"], "kind")
    if record.get("kind") in (ERASURE, EXPIRY):
        raise InputError("the log itself writes entries of this kind", field="kind")
    if "texts" in record:
        raise InputError("hashes of texts are put here; give the texts themselves", field="texts")
    return dict(record)


def as_stored(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record as it will be read. Raises `InputError` for what JSON cannot hold, and for one that
    is too large."""
    try:
        _require_shallow(record)
        text = canonical(record)
    except ValueError as error:
        raise InputError(f"this is not JSON: {first_line(error)}", field="record") from error
    if len(text) > LARGEST:
        raise InputError(f"{len(text):,} bytes, and at most {LARGEST:,} are recorded", field="record")
    return dict(read_canonical(text.decode()))


def _require_shallow(value: object, levels: int = DEEPEST) -> None:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if items and not levels:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
    for item in items:
        _require_shallow(item, levels - 1)


def _require_name(value: object, field: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise InputError(f"must be a text of 1 to {LONGEST_NAME} characters", field=field)
    if "\0" in value:
        raise InputError("must not hold U+0000", field=field)


def require_text(name: object, text: object) -> None:
    """Raise `InputError` for a text, or a text's name, that cannot be stored."""
    _require_name(name, "texts")
    shown = f"texts.{one_line(str(name), 60)}"
    if not isinstance(text, str):
        raise InputError("must be text", field=shown)
    if surrogate_in(f"{name}{text}") is not None:
        raise InputError("holds half a character (a lone surrogate)", field=shown)


def stamp(moment: datetime | None = None) -> str:
    """Return a moment (by default now) in UTC, ISO 8601 with microseconds: such texts sort as the moments do.

    Raises `InputError` for a moment without a time zone.
    """
    moment = datetime.now(UTC) if moment is None else moment
    if moment.tzinfo is None:
        raise InputError("a time needs a time zone, such as datetime.now(UTC)")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
