"""Hashes of texts that say nothing once the salt is erased."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256

from lrp4rag.guard.audit.canonical import canonical, read_canonical

_SALT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Salted:
    """A text as it is stored, and the hash of it that the record holds."""

    salt: str
    text: str
    hash: str


def salted(text: str) -> Salted:
    """The text with a new salt of 16 random bytes, and HMAC-SHA256 of the two."""
    salt = secrets.token_bytes(16)
    return Salted(salt.hex(), canonical(text).decode(), _hash(salt, text))


def salted_hash(salt: object, text: object) -> str | None:
    """The hash of a text as it is stored; None where salt or text are not as they were written."""
    if not isinstance(salt, str) or not _SALT.fullmatch(salt):
        return None
    try:
        value = read_canonical(text)
    except ValueError:
        return None
    return _hash(bytes.fromhex(salt), value) if isinstance(value, str) else None


def _hash(salt: bytes, text: str) -> str:
    return hmac.new(salt, text.encode(), sha256).hexdigest()
