"""Parse JSON strictly (no duplicate keys, no NaN, no depth that Python cannot follow), and seal records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.text import one_line

SEAL = "sha256"
"""The key of a sealed record that holds the hash of all others."""
LARGEST = 64 * 2**20
"""Bytes of a file that holds one record."""


def parse(text: str | bytes, integer: Callable[[str], Any] = int) -> Any:
    """Parse a value; `integer` makes one of its digits. Raises `ValueError` (`json.JSONDecodeError` where the
    position is known)."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=integer,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def finite_or_none(value: Any) -> Any:
    """Replace every number that is not finite by None: JSON has no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite_or_none(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return value


def read_record(path: str | Path, what: str, limit: int = LARGEST) -> dict[str, Any]:
    """Read the JSON object of a file. Raises `InputError` saying that the file is not `what`, and `OSError`
    where it cannot be read."""
    try:
        record = parse(read_bytes(path, limit))
    except ValueError as error:
        raise InputError(f"not {what}: {error}", path=path) from error
    if not isinstance(record, dict):
        raise InputError(f"not {what}: it holds no JSON object", path=path)
    return record


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """Add the record's hash to it."""
    return {**_unsealed(record), SEAL: _digest(record)}


def require_seal(record: dict[str, Any], path: str | Path, what: str) -> None:
    """Raise `InputError` where a record has changed since it was sealed."""
    if record.get(SEAL) != _digest(record):
        raise InputError(
            f"{what} was changed or is damaged: it does not have the hash in it", path=path, field=SEAL
        )


def _unsealed(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != SEAL}


def _digest(record: dict[str, Any]) -> str:
    content = json.dumps(_unsealed(record), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hash_of(content)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise ValueError(f"the key '{one_line(name, 60)}' stands twice in one object")
            names.add(name)
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{one_line(text, 40)} is too large for a number")
    return value
