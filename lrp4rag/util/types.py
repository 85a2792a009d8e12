"""Check numbers from outside: what is NaN, infinite or out of range is refused, with its field."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line


def _no_truth(value: Any) -> Any:
    """Refuse true, which Python and pydantic take for 1."""
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Bounded = Annotated[Number, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
"""Slopes, offsets and logits: what is larger overflows in the arithmetic after it."""
Probability = Annotated[Number, Field(allow_inf_nan=False, ge=0, le=1)]
Count = Annotated[Whole, Field(ge=0)]
Positive = Annotated[Whole, Field(ge=1)]


class _Named(Protocol):
    @property
    def id(self) -> str: ...


Rows = TypeVar("Rows", bound=Sequence[_Named])


def ids_once(rows: Rows) -> Rows:
    """Return the rows of a file; raises `ValueError` for an id that occurs twice."""
    ids = set[str]()
    for row in rows:
        if row.id in ids:
            raise ValueError(f"'{one_line(row.id, 100)}' stands there twice")
        ids.add(row.id)
    return rows


def first_fault(error: ValidationError, fields: Collection[str] = ()) -> tuple[str, str | None]:
    """Return the message of a record's first error, and its field, such as "labels[0].start". For unknown
    names, the message says which they are and, of the record's `fields`, which they may be."""
    first = error.errors()[0]
    field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
    unknown = [
        str(details["loc"][0])
        for details in error.errors()
        if _is_unknown(details) and len(details["loc"]) == 1
    ]
    message = first["msg"].removeprefix("Value error, ")
    if _is_unknown(first):
        message = "there is no such field"
        if fields and unknown:
            near = get_close_matches(unknown[0], fields, n=1)
            message += f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(fields)}"
    elif first["type"] == "missing":
        message = "it is missing"
        if unknown:
            message += f"; there are {', '.join(unknown)}, which are no fields"
    return message, field.lstrip(".") or None


def _is_unknown(error: ErrorDetails) -> bool:
    return error["type"] == "extra_forbidden"


def require_whole(value: object, field: str, least: int | None = None) -> None:
    """Raise `InputError` where an argument is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or (least is not None and value < least):
        wanted = "a whole number" if least is None else f"a whole number from {least}"
        raise InputError(f"{wanted} is needed, not {one_line(repr(value), 60)}", field=field)


def require_kind(value: object, field: str, *kinds: type) -> None:
    """Raise `InputError` where an argument is of another type."""
    if not isinstance(value, kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise InputError(f"{wanted} is needed, not {one_line(repr(value), 60)}", field=field)


def not_finite(arrays: Mapping[str, Any]) -> str | None:
    """Return the name of the first array with NaN or Inf; None where all are finite."""
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all():
            return name
    return None
