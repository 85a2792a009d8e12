"""From what was timed to the time of a whole quantity."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

QUANTITIES = ("response", "prompt", "matrix")
"""R_response, R_prompt and the full R*."""


Unit = Mapping[str, Any]
"""One timed call for `count` rows (or columns) of R*, from `first` on: first, count, seconds."""


@dataclass(frozen=True)
class Total:
    """Seconds of a whole quantity; extrapolated where only some rows were timed."""

    seconds: float
    extrapolated: bool


def unit_seconds(about: dict[str, Any], units: Sequence[Unit]) -> float:
    """Mean seconds of a row (or column): positions are spread evenly, so their mean stands for all."""
    extra = about["extra_units"]
    return statistics.fmean(unit["seconds"] / (unit["count"] + extra) for unit in units)


def totals(
    about: dict[str, Any], response: float | None, prompt: float | None, units: Sequence[Unit]
) -> dict[str, Total]:
    """Every quantity that what was timed allows to state.

    R_prompt in one pass is what units share (a graph, a replay) and one unit more, so that the shared
    part is told from it without being timed alone.
    """
    found: dict[str, Total] = {}
    if units:
        unit = unit_seconds(about, units)
        shared = 0.0 if prompt is None else max(prompt - unit, 0.0)
        seconds = shared + (about["units"] + about["extra_units"]) * unit
        covered = {unit["first"]: unit["count"] for unit in units}
        everything = Total(seconds, sum(covered.values()) < about["units"])
        found = dict.fromkeys(QUANTITIES, everything)
    for name, whole in (("response", response), ("prompt", prompt)):
        if name in about["whole"]:
            found.pop(name, None)
            if whole is not None:
                found[name] = Total(whole, False)
    return found


def spread(units: int, chunk: int, calls: int) -> list[int]:
    """The first unit of each of `calls` chunks in the middle of equal parts of the response."""
    slots = math.ceil(units / chunk)
    return [int((k + 0.5) / calls * slots) * chunk for k in range(calls)]


def relative_error(found: Sequence[float], expected: Sequence[float]) -> float:
    """The largest difference, over the largest expected value."""
    worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
    return worst / max(abs(b) for b in expected)
