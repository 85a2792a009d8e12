"""What one more response costs a system, as `python -m benchmarks.systems` measured it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.errors import InputError


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one response: median `seconds`, these over a plain forward's of the reader in the same process, and
    the peak resident memory of that process in bytes, weights included."""

    seconds: float
    forwards: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Costs:
    """By system, and the conditions in words."""

    systems: dict[str, Cost]
    conditions: str


def read_costs(path: Path) -> Costs:
    """Raises `InputError` for a file that the benchmark did not write."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        systems = {name: Cost(**one) for name, one in record["systems"].items()}
        return Costs(systems, str(record["conditions"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"not what python -m benchmarks.systems wrote: {error}", path=path) from error
