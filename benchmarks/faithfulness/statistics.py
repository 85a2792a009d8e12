"""Intervals and verdicts by a paired bootstrap over samples: every method sees the same draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.training.metrics import bootstrap

RESAMPLES = 2000

Draw = NDArray[np.intp]
Statistic = Callable[[Draw], float]
"""A method's figure on the samples with these numbers (some of them drawn more than once)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % percentile interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of all methods. `differences` are ours (the best composite) minus the other.

    `verdict` compares ours with the best other method: best or worse where the interval of their
    difference excludes 0, else level. None without methods on both sides.
    """

    methods: dict[str, Estimate]
    differences: dict[str, Estimate]
    ours: str | None
    other: str | None
    verdict: Literal["best", "level", "worse"] | None


def mean_of(values: list[float]) -> Statistic:
    array = np.asarray(values, dtype=np.float64)
    return lambda draw: float(array[draw].mean())


def compare(statistics: Mapping[str, Statistic], samples: int, ours: tuple[str, ...]) -> Comparison:
    """Compare methods by a statistic of which more is better, over `samples` samples."""
    whole: Any = np.arange(samples)
    values = {name: statistic(whole) for name, statistic in statistics.items()}
    mine = max((name for name in values if name in ours), key=values.__getitem__, default=None)
    other = max((name for name in values if name not in ours), key=values.__getitem__, default=None)
    gains = {} if mine is None else {name: f"{mine} - {name}" for name in values if name != mine}

    def measured(draw: Draw) -> dict[str, float]:
        found = {name: statistic(draw) for name, statistic in statistics.items()}
        return found | {gain: found[mine or ""] - found[name] for name, gain in gains.items()}

    found = bootstrap(measured, whole, resamples=RESAMPLES)
    estimates = {name: Estimate(**interval.model_dump()) for name, interval in found.items()}
    differences = {name: estimates[gain] for name, gain in gains.items()}
    verdict: Literal["best", "level", "worse"] | None = None
    if mine is not None and other is not None:
        low, high = differences[other].low, differences[other].high
        verdict = "best" if low > 0 else "worse" if high < 0 else "level"
    return Comparison({name: estimates[name] for name in values}, differences, mine, other, verdict)
