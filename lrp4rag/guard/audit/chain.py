"""The chain: entries, texts and signed checkpoints, added within a writer's transaction, and the key."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Row, and_, bindparam, exists, or_, select

from lrp4rag.guard.audit.database import CHECKPOINTS, ENTRIES, HEAD, TEXTS
from lrp4rag.guard.audit.entry import (
    ERASURE,
    EXPIRY,
    NOTHING,
    Entry,
    canonical,
    chained,
    read_canonical,
    row_of,
    salted_hash,
    stamp,
)
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.files import read_bytes, write_atomically
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.strict_json import parse

LARGEST = 10_000
"""Bytes of a key file."""


def open_key(path: Path) -> Ed25519PrivateKey:
    """Return the private key in a file; make a missing one, with its `.pub`.

    Raises `InputError` for a file that others can read, that holds no such key, or beside which another
    key's public half lies.
    """
    if not path.exists():
        _create(path)
    if mode := path.stat().st_mode & 0o077:
        raise InputError(
            f"others may use this key (mode {mode:03o}): chmod 600 it, or make a new one", path=path
        )
    try:
        key = load_pem_private_key(read_bytes(path, LARGEST), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError("this is no private key in PEM without a password", path=path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("this is no Ed25519 key", path=path)
    beside = public_path(path)
    if not beside.exists():
        write_atomically(beside, public_pem(key.public_key()))
    elif key_hex(_read_public(beside)) != key_hex(key.public_key()):
        raise InputError(f"this is the public half of another key than {path.name}", path=beside)
    return key


def open_public_key(path: Path) -> Ed25519PublicKey:
    """Return the public key of a file, or of the private key in it. Raises `InputError` where there is
    neither."""
    beside = public_path(path)
    return _read_public(beside if path.suffix != ".pub" and beside.exists() else path)


def public_path(path: Path) -> Path:
    return path.with_name(path.name + ".pub")


def public_pem(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_hex(key: Ed25519PublicKey) -> str:
    """Return the key's 32 bytes in hexadecimal, as checkpoints name it."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _create(path: Path) -> None:
    """Write a new key. Of two processes that do so at once, the first one's stays, never half-written."""
    if not path.parent.is_dir():
        raise InputError("its folder does not exist", path=path)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".lrp4rag-key-")
    except OSError as error:
        raise InputError(f"cannot write here: {error.strerror}", path=path) from error
    try:
        with open(descriptor, "wb") as stream:  # its mode is 0600
            stream.write(pem)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(partial)


def _read_public(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(read_bytes(path, LARGEST))
    except FileNotFoundError as error:
        raise InputError("there is no key here", path=path) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("this is no public key in PEM; name the .pub file", path=path) from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("this is no Ed25519 key", path=path)
    return key


_Count = Annotated[int, Field(ge=1, lt=2**53)]
_Hash = Annotated[str, Field(pattern=re.compile(r"\A[0-9a-f]{64}\Z"))]


class Checkpoint(BaseModel):
    """A key's word that at a time the entry with this hash was the last. Checkpoints count from 1, and each
    names the hash of the one before, so that none is missed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    number: _Count
    previous: _Hash
    sequence: _Count
    hash: _Hash
    time: str
    key: _Hash
    signature: str = Field(pattern=re.compile(r"\A[0-9a-f]{128}\Z"))

    @property
    def text(self) -> str:
        """The checkpoint as canonical JSON: so the log stores it, and so it is printed."""
        return canonical(self.model_dump()).decode()

    @property
    def signed(self) -> bool:
        """True where the signature is valid for the key that the checkpoint names."""
        content = _signed_bytes(self.model_dump(exclude={"signature"}))
        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key))
            public.verify(bytes.fromhex(self.signature), content)
        except (InvalidSignature, ValueError):
            return False
        return True

    @classmethod
    def stored(cls, text: object) -> Checkpoint:
        """Return the checkpoint in a row of its table. Raises `ValueError` for anything else."""
        return cls.model_validate(read_canonical(text))

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read a checkpoint that was kept elsewhere. Raises `InputError` for an invalid or unsigned one."""
        try:
            checkpoint = cls.model_validate(parse(text))
        except ValueError as error:
            raise InputError(
                "not a checkpoint; give what `lrp4rag audit checkpoint` printed", field="checkpoint"
            ) from error
        if not checkpoint.signed:
            raise InputError("its signature is not of the key that it names: changed", field="checkpoint")
        return checkpoint


def _signed_bytes(content: dict[str, Any]) -> bytes:
    """Prefix the content with its purpose: no other signature of the key is then that of a checkpoint."""
    return b"lrp4rag audit checkpoint 1\n" + canonical(content)


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


def add_texts(connection: Connection, id: str, texts: Mapping[str, dict[str, str]]) -> None:
    """Store salted texts of an entry, by name."""
    for name, text in texts.items():
        connection.execute(TEXTS.insert().values(id=id, name=name, **text))


def read_texts(
    connection: Connection, entries: Iterable[Entry], name: str | None = None
) -> dict[str, dict[str, str]]:
    """Read the texts of entries, by their ids and the texts' names; of one `name` only, where given.
    Raises `LRP4RAGError` for a text that does not have its hash in the record."""
    by_id = {entry.id: entry for entry in entries}
    chosen = select(TEXTS).where(TEXTS.c.id.in_(by_id)).order_by(TEXTS.c.name)
    if name is not None:
        chosen = chosen.where(TEXTS.c.name == name)
    texts: dict[str, dict[str, str]] = {}
    for row in connection.execute(chosen):
        entry = by_id[row.id]
        if salted_hash(row.salt, row.text) != entry.record.get("texts", {}).get(row.name):
            raise LRP4RAGError("a text of this entry was changed: run lrp4rag audit verify")
        texts.setdefault(row.id, {})[row.name] = str(read_canonical(row.text))
    return texts


def named_texts(record: object) -> dict[str, Any]:
    """Return the hashes of texts in a record as it is stored; none where it was damaged."""
    try:
        return dict(read_canonical(record).get("texts", {}))
    except (ValueError, TypeError, AttributeError):
        return {}


def is_erased(connection: Connection, sequence: int) -> bool:
    """Say whether a later entry records that this entry's texts were deleted."""
    return bool(connection.scalar(_ERASED, {"sequence": sequence}))


def add_entry(connection: Connection, record: dict[str, Any]) -> Entry:
    """Append a record. Raises `InputError` where the log has an entry with its id."""
    head = _locked_head(connection)
    if connection.scalar(select(exists().where(ENTRIES.c.id == record["id"]))):
        raise InputError("the log has an entry with this id already", field="id")
    entry = chained(head.entries + 1, head.hash, record)
    connection.execute(ENTRIES.insert().values(row_of(entry)))
    connection.execute(HEAD.update().values(entries=entry.sequence, hash=entry.hash))
    return entry


def add_checkpoint(connection: Connection, key: Ed25519PrivateKey) -> Checkpoint:
    """Sign the head, unless the last checkpoint signs it by this key already. Raises `LRP4RAGError` where
    there is no entry yet."""
    head = _locked_head(connection)
    if head.entries == 0:
        raise LRP4RAGError("the log is empty: there is nothing to sign yet")
    newest = select(CHECKPOINTS.c.checkpoint).order_by(CHECKPOINTS.c.number.desc()).limit(1)
    last = connection.scalar(newest)
    if last is not None and (checkpoint := _still_holds(last, head, key)):
        return checkpoint
    content: dict[str, Any] = {
        "number": head.checkpoints + 1,
        "previous": NOTHING if last is None else hash_of(str(last).encode("utf-8", "surrogateescape")),
        "sequence": head.entries,
        "hash": head.hash,
        "time": stamp(),
        "key": key_hex(key.public_key()),
    }
    signature = key.sign(_signed_bytes(content)).hex()
    checkpoint = Checkpoint.model_validate({**content, "signature": signature})
    connection.execute(CHECKPOINTS.insert().values(number=checkpoint.number, checkpoint=checkpoint.text))
    connection.execute(HEAD.update().values(checkpoints=checkpoint.number))
    return checkpoint


def require_key_of_log(connection: Connection, key: Ed25519PrivateKey) -> None:
    """Raise `InputError` for another key than that of the log's first checkpoint: a log has one key, and
    checkpoints of another would count as forged. A damaged checkpoint names no key; `verify` reports the
    damage."""
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
    """Raise `InputError` where the log has entries: its key exists, and a missing file is another key."""
    if connection.scalar(select(ENTRIES.c.sequence).limit(1)) is not None:
        raise InputError(
            "there is no key here, and the log has entries already: name the file of its key, or, if it was "
            f"never signed, make one with `lrp4rag audit checkpoint --public --key {path}`",
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
