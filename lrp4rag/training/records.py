"""Frozen dataclasses, with arrays in them, as JSON and back: what the cache keeps of a result."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import singledispatch
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What `from_json` raises for what `to_json` did not write."""
DIGITS = 7
"""Significant digits of an array's elements. What is cached is what is used, even if just computed."""


@singledispatch
def to_json(value: Any) -> Any:
    """Dataclasses, pydantic models, arrays, tuples and mappings; a number that is not finite is None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return value


@to_json.register
def _(value: BaseModel) -> Any:
    return value.model_dump()


@to_json.register
def _(value: float) -> float | None:
    return value if math.isfinite(value) else None


@to_json.register
def _(value: np.generic) -> Any:
    return to_json(value.item())


@to_json.register
def _(value: np.ndarray) -> Any:
    return _rounded(value.tolist())


@to_json.register
def _(value: dict) -> dict[str, Any]:  # type: ignore[type-arg]
    return {str(key): to_json(item) for key, item in value.items()}


@to_json.register(list)
@to_json.register(tuple)
def _(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [to_json(item) for item in value]


def rounded(value: Any, decimals: int = 5) -> Any:
    """What `to_json` gives, with fewer decimals, for a page."""
    if isinstance(value, dict):
        return {key: rounded(item, decimals) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, decimals) for item in value]
    return round(value, decimals) if isinstance(value, float) else value


def rounded_to(value: Any, digits: int) -> Any:
    """The same with so many significant digits, to keep less of it."""
    if isinstance(value, dict):
        return {key: rounded_to(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded_to(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def from_json(kind: Any, data: Any) -> Any:
    """What `to_json` wrote of a value of this type. None among the elements of an array becomes NaN.

    Raises one of `UNREADABLE` for data of another type.
    """
    if get_origin(kind) is not None:
        return _generic(kind, data)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_validate(data)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: from_json(hints[name], item) for name, item in data.items()})
    _require(data, kind)
    return data


def _require(data: Any, kind: Any) -> None:
    """Raise `TypeError` for data that is no text, number or list, as its type demands."""
    if kind is float:
        right = data is None or (isinstance(data, int | float) and not isinstance(data, bool))
    elif kind is int:
        right = isinstance(data, int) and not isinstance(data, bool)
    else:
        right = kind not in (str, bool, list, dict) or isinstance(data, kind)
    if not right:
        raise TypeError(f"{type(data).__name__} where {kind.__name__} was written")


def _generic(kind: Any, data: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is np.ndarray:
        _require(data, list)
        return _array(inner, data)
    if origin in (Union, UnionType):
        (known,) = (each for each in inner if each is not type(None))
        return None if data is None else from_json(known, data)
    if origin is dict:
        _require(data, dict)
        return {key: from_json(inner[1], item) for key, item in data.items()}
    if origin is tuple:
        _require(data, list)
        kinds = [inner[0]] * len(data) if inner[-1] is Ellipsis else inner
        return tuple(from_json(each, item) for each, item in zip(kinds, data, strict=True))
    if origin is Literal and data not in inner:
        raise ValueError(f"not one of {', '.join(map(str, inner))}")
    return data


def _array(inner: tuple[Any, ...], data: Any) -> NDArray[Any]:
    (scalar,) = get_args(inner[1])
    return np.array(data, dtype=scalar)


def _rounded(item: Any) -> Any:
    if isinstance(item, list):
        return [_rounded(each) for each in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None
    return rounded_to(item, DIGITS)
