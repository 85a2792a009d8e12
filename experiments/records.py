"""Frozen dataclasses, with arrays in them, as JSON and back: what the cache keeps of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel, TypeAdapter

from lrp4rag.util.strict_json import finite_or_none

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What `from_json` raises for what `to_json` did not write."""
DIGITS = 7
"""Significant digits of an array's elements. What is cached is what is used, even if just computed."""


def to_json(value: Any) -> Any:
    """Dataclasses, pydantic models, arrays, tuples and mappings; a number that is not finite is None."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return rounded_to(finite_or_none(value.tolist()), DIGITS)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return finite_or_none(value.item() if isinstance(value, np.generic) else value)


def rounded(value: Any, decimals: int = 6) -> Any:
    """What `to_json` gives, with fewer decimals, for a page."""
    return _floats_changed(value, lambda number: round(number, decimals))


def rounded_to(value: Any, digits: int) -> Any:
    """What `to_json` gives, with so many significant digits."""
    return _floats_changed(value, lambda number: float(f"{number:.{digits}g}"))


def _floats_changed(value: Any, change: Callable[[float], float]) -> Any:
    if isinstance(value, dict):
        return {key: _floats_changed(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats_changed(item, change) for item in value]
    return change(value) if isinstance(value, float) else value


def from_json(kind: Any, data: Any) -> Any:
    """What `to_json` wrote of a value of this type, without fields that the type no longer has. None among
    the elements of an array becomes NaN.

    Raises one of `UNREADABLE` for data of another type.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: from_json(hints[name], item) for name, item in data.items() if name in hints})  # type: ignore[operator]
    if origin is np.ndarray:
        (scalar,) = get_args(inner[1])
        return np.array(_adapter(list).validate_python(data), dtype=scalar)
    if origin in (Union, UnionType):
        (known,) = (each for each in inner if each is not type(None))
        return None if data is None else from_json(known, data)
    if origin in (dict, Mapping):
        key = int if inner[0] is int else str
        return {key(name): from_json(inner[1], item) for name, item in data.items()}
    if (listed := _listed(kind, data)) is not None:
        return listed
    # A float that was not finite is None, and whole numbers stay as they were written.
    valid = _adapter(float | None if kind is float else kind).validate_python(data)
    return data if kind is float else valid


def _listed(kind: Any, data: Any) -> Any:
    """A list, a tuple or a named tuple; None where this type is none of them."""
    origin, inner = get_origin(kind), get_args(kind)
    named = isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
    if not named and origin not in (list, tuple):
        return None
    items = _adapter(list).validate_python(data)
    if named:
        kinds = list(get_type_hints(kind).values())
    else:
        kinds = [inner[0]] * len(items) if origin is list or inner[-1] is Ellipsis else list(inner)
    values = [from_json(each, item) for each, item in zip(kinds, items, strict=True)]
    if named:
        return kind(*values)
    return values if origin is list else tuple(values)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind, config=None if is_model else {"strict": True})
