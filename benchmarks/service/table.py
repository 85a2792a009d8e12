"""Results as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.command import table


def rows_of(result: Mapping[str, Any]) -> list[str]:
    """A line for each result that is no list."""
    return table(
        ("", ""),
        [
            (name.replace("_", " "), f"{value:.3g}" if isinstance(value, float) else str(value))
            for name, value in result.items()
            if not isinstance(value, list) or len(value) < 5
        ],
    )
