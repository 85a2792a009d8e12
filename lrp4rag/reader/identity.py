"""The identity of a reader: hashes that cards, stores and records hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from lrp4rag.util.hashes import json_hash


@dataclass(frozen=True, slots=True)
class ReaderIdentity:
    """Hashes of everything that decides a reader's relevance. The digest leaves out `dtype`, and `quantised`,
    which words the quantisation of the weights: the weights' hash covers it."""

    name: str
    weights: str
    config: str
    tokenizer: str
    template: str
    chat_template: bool
    dtype: str
    quantised: str = ""

    @property
    def digest(self) -> str:
        parts = [self.weights, self.config, self.tokenizer, self.template, self.chat_template]
        return json_hash(parts)[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as JSON; `quantised` only for quantised weights."""
        record = {**asdict(self), "digest": self.digest}
        return record if self.quantised else {name: record[name] for name in record if name != "quantised"}

    def __str__(self) -> str:
        return reader_name(self.as_dict())


def require_identity(record: dict[str, Any]) -> dict[str, Any]:
    """Check that a record is one of `ReaderIdentity.as_dict`, and return it; raises `ValueError` naming the
    faulty field."""
    kinds = {field.name: field.type for field in fields(ReaderIdentity)} | {"digest": "str"}
    for name, kind in kinds.items():
        if name == "quantised" and name not in record:
            continue
        if type(record.get(name)).__name__ != kind:
            raise ValueError(f"'{name}' must be a {kind}")
    if surplus := set(record) - set(kinds):
        raise ValueError(f"'{min(surplus)}' is not permitted")
    return record


def reader_name(identity: dict[str, Any]) -> str:
    """Word a reader, from its identity as `ReaderIdentity.as_dict` writes it."""
    prompt = "chat template" if identity["chat_template"] else "raw prompt"
    weights = f", quantised: {identity['quantised']}" if identity.get("quantised") else ""
    return f"{identity['name']} ({prompt}{weights}, {identity['digest']})"
