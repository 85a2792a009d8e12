"""Numbers from outside are checked here: what is NaN, infinite or out of range is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, ValidationError

from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line


def _no_truth(given: Any) -> Any:
    """Python, and pydantic, take true for 1."""
    if isinstance(given, bool):
        raise ValueError("a number is needed, not true or false")
    return given


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


def ids_once(given: Rows) -> Rows:
    """The rows of a file, each known by its id; raises `ValueError` for one that stands twice."""
    seen = set[str]()
    for one in given:
        if one.id in seen:
            raise ValueError(f"'{one_line(one.id, 100)}' stands there twice")
        seen.add(one.id)
    return given


def first_fault(error: ValidationError) -> tuple[str, str | None]:
    """What is wrong first in a record, and the field where it is, such as "labels[0].start"."""
    first = error.errors()[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    return first["msg"].removeprefix("Value error, "), place.lstrip(".") or None


def require_whole(given: object, field: str, least: int | None = None) -> None:
    """Raise `InputError` where an argument is no whole number of at least `least`."""
    if isinstance(given, bool) or not isinstance(given, Integral) or (least is not None and given < least):
        wanted = "a whole number" if least is None else f"a whole number from {least}"
        raise InputError(f"{wanted} is needed, not {one_line(repr(given), 60)}", field=field)


def require_kind(given: object, field: str, *kinds: type) -> None:
    """Raise `InputError` where an argument is none of these types."""
    if not isinstance(given, kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise InputError(f"{wanted} is needed, not {one_line(repr(given), 60)}", field=field)


def not_finite(arrays: Mapping[str, Any]) -> str | None:
    """The name of the first array of real numbers that holds NaN or Inf; None where all are finite."""
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all():
            return name
    return None
