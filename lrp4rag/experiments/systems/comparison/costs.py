"""What one more response costs a system, as `python -m benchmarks.systems` measured it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from lrp4rag.errors import InputError
from lrp4rag.strict_json import read_record
from lrp4rag.types import first_fault

WHAT = "what python -m benchmarks.systems wrote"
Measured = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one response: median `seconds`, these over a plain forward's of the reader in the same process, and
    the peak resident memory of that process in bytes, weights included."""

    seconds: Measured
    forwards: Measured
    peak_bytes: Bytes


@dataclass(frozen=True, slots=True)
class Costs:
    """By system, and the conditions in words."""

    systems: dict[str, Cost]
    conditions: str


def read_costs(path: Path) -> Costs:
    """Raises `InputError` for a file that the benchmark did not write."""
    try:
        return TypeAdapter(Costs).validate_python(read_record(path, WHAT))
    except ValidationError as error:
        fault, field = first_fault(error)
        raise InputError(f"not {WHAT}: {fault}", path=path, field=field) from error
