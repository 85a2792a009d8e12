"""Intervals and verdicts by a paired bootstrap over samples: every method sees the same draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.metrics import bootstrap
from lrp4rag.classifiers.card import Interval

RESAMPLES = 2000
Draw = NDArray[np.intp]
Statistic = Callable[[Draw], float]
"""A method's figure on the samples with these numbers (some of them drawn more than once)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of all methods. `differences` are ours (the best composite) minus the other.

    `verdict` compares ours with the best other method: best or worse where the interval of their
    difference excludes 0, else level. None without methods on both sides.
    """

    methods: dict[str, Interval]
    differences: dict[str, Interval]
    ours: str | None
    other: str | None
    verdict: Literal["best", "level", "worse"] | None

    def record(self) -> dict[str, Any]:
        """JSON values."""
        intervals = {
            name: {key: one.model_dump() for key, one in getattr(self, name).items()}
            for name in ("methods", "differences")
        }
        return intervals | {"ours": self.ours, "other": self.other, "verdict": self.verdict}


def mean_of(values: list[float]) -> Statistic:
    array = np.asarray(values, dtype=np.float64)
    return lambda draw: float(array[draw].mean())


def compare(statistics: Mapping[str, Statistic], samples: int, ours: tuple[str, ...]) -> Comparison:
    """Compare methods by a statistic of which more is better, over `samples` samples."""
    whole: Any = np.arange(samples)
    values = {name: statistic(whole) for name, statistic in statistics.items()}
    mine = max((name for name in values if name in ours), key=values.__getitem__, default=None)
    other = max((name for name in values if name not in ours), key=values.__getitem__, default=None)

    def figures(draw: Draw) -> dict[str, float]:
        drawn = {name: statistic(draw) for name, statistic in statistics.items()}
        others = [name for name in drawn if name != mine] if mine is not None else []
        return drawn | {f"- {name}": drawn[mine or ""] - drawn[name] for name in others}

    intervals = bootstrap(figures, whole, resamples=RESAMPLES)
    differences = {name[2:]: one for name, one in intervals.items() if name.startswith("- ")}
    verdict: Literal["best", "level", "worse"] | None = None
    if mine is not None and other is not None:
        low, high = differences[other].low or 0.0, differences[other].high or 0.0
        verdict = "best" if low > 0 else "worse" if high < 0 else "level"
    return Comparison({name: intervals[name] for name in values}, differences, mine, other, verdict)
