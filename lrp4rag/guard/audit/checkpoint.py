"""Signed statements about the head of the chain."""

from __future__ import annotations

import re
from typing import Annotated, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field

from lrp4rag.guard.audit.canonical import canonical, digest, read_canonical
from lrp4rag.guard.audit.keys import key_hex
from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import parse

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
        """It as canonical JSON: what is stored, and what is kept elsewhere."""
        return canonical(self.model_dump()).decode()

    @property
    def digest(self) -> str:
        return digest(self.text.encode())

    @property
    def signed(self) -> bool:
        """Whether the signature is one of the key that it names."""
        content = _signed_bytes(self.model_dump(exclude={"signature"}))
        try:
            public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key))
            public.verify(bytes.fromhex(self.signature), content)
        except (InvalidSignature, ValueError):
            return False
        return True

    @classmethod
    def stored(cls, text: object) -> Checkpoint:
        """The checkpoint in a row of its table. Raises `ValueError` for anything else."""
        return cls.model_validate(read_canonical(text))

    @classmethod
    def given(cls, text: str) -> Checkpoint:
        """One that was kept elsewhere. Raises `InputError` for what is none, or is not signed."""
        try:
            found = cls.model_validate(parse(text))
        except ValueError as error:
            raise InputError(
                "not a checkpoint; give what `lrp4rag audit checkpoint --json` printed", field="checkpoint"
            ) from error
        if not found.signed:
            raise InputError("its signature is not of the key that it names: changed", field="checkpoint")
        return found


def sign(
    key: Ed25519PrivateKey, *, number: int, previous: str, sequence: int, hash: str, time: str
) -> Checkpoint:
    content = {"number": number, "previous": previous, "sequence": sequence, "hash": hash, "time": time}
    content["key"] = key_hex(key.public_key())
    return Checkpoint.model_validate({**content, "signature": key.sign(_signed_bytes(content)).hex()})


def _signed_bytes(content: dict[str, Any]) -> bytes:
    """Named, so that a signature of the key for something else is none of a checkpoint."""
    return b"lrp4rag audit checkpoint 1\n" + canonical(content)
