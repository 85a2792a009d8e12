"""Canonical JSON (RFC 8785): one value has one spelling, so that its hash means something."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import rfc8785

from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import parse
from lrp4rag.util.text import surrogate_in

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None

DEEPEST = 64
"""Levels that objects and lists may stand in each other."""
_SAFE = 2**53
"""From here on a double, which is what JSON's numbers are, does not hold every integer."""


def canonical(value: JSON) -> bytes:
    """The one spelling of a value. Raises `ValueError` for what JSON cannot hold."""
    return rfc8785.dumps(value)


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_canonical(text: object) -> Any:
    """The value in a text of canonical JSON. Raises `ValueError` for anything else: another spelling of the
    same value, a key that stands twice, bytes, text that is not UTF-8."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    try:
        value = _as_doubles(parse(text))
        same = canonical(value) == text.encode()
    except (RecursionError, OverflowError) as error:
        raise ValueError("not canonical JSON") from error
    if not same:
        raise ValueError("JSON, but not in its canonical spelling")
    return value


def require_json(value: object, field: str, depth: int = 0) -> JSON:
    """The value as plain JSON. Raises `InputError`, which names the field, for what JSON cannot hold."""
    if depth > DEEPEST:
        raise InputError(f"nested deeper than {DEEPEST} levels", field=field)
    if isinstance(value, str):
        if surrogate_in(value) is not None:
            raise InputError("holds half a character (a lone surrogate)", field=field)
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= _SAFE:
            raise InputError("an integer of 2^53 or more is not exact in JSON; give it as text", field=field)
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{value} is no number in JSON", field=field)
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) and surrogate_in(name) is None for name in value):
            raise InputError("every key must be text", field=field)
        return {name: require_json(item, f"{field}.{name}", depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [require_json(item, f"{field}[{place}]", depth + 1) for place, item in enumerate(value)]
    raise InputError(f"{type(value).__name__} is not JSON", field=field)


def _as_doubles(value: Any) -> Any:
    """Python reads 1e16, which is spelt with all its digits, as an integer that JSON does not have."""
    if isinstance(value, int) and abs(value) >= _SAFE:
        return float(value)
    if isinstance(value, dict):
        return {name: _as_doubles(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return value
