"""Numbers from outside are checked here: what is NaN, infinite or out of range is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import Field, ValidationError

from lrp4rag.text import one_line

Finite = Annotated[float, Field(allow_inf_nan=False)]
Bounded = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
"""Slopes, offsets and logits: what is larger overflows in the arithmetic after it."""
Probability = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


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


def not_finite(arrays: Mapping[str, Any]) -> str | None:
    """The name of the first array of real numbers that holds NaN or Inf; None where all are finite."""
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all():
            return name
    return None
