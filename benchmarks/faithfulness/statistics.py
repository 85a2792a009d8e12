"""Intervals and verdicts by a paired bootstrap over samples: every method sees the same draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000

Draw = NDArray[np.intp]
Statistic = Callable[[Draw], float]
"""A method's figure on the samples with these numbers (some of them drawn more than once)."""

Verdict = Literal["best", "level", "worse"]


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
    verdict: Verdict | None


def mean_of(values: list[float]) -> Statistic:
    array = np.asarray(values, dtype=np.float64)
    return lambda draw: float(array[draw].mean())


def compare(
    statistics: Mapping[str, Statistic], samples: int, ours: tuple[str, ...], seed: int = 0
) -> Comparison:
    """Compare methods by a statistic of which more is better, over `samples` samples."""
    generator = np.random.default_rng(seed)
    draws = [generator.integers(samples, size=samples) for _ in range(RESAMPLES)]
    whole = np.arange(samples)
    values = {name: statistic(whole) for name, statistic in statistics.items()}
    drawn = {name: np.array([statistic(d) for d in draws]) for name, statistic in statistics.items()}
    mine = max((name for name in values if name in ours), key=values.__getitem__, default=None)
    other = max((name for name in values if name not in ours), key=values.__getitem__, default=None)
    differences = {}
    if mine is not None:
        differences = {
            name: _estimate(values[mine] - values[name], drawn[mine] - drawn[name])
            for name in values
            if name != mine
        }
    return Comparison(
        methods={name: _estimate(values[name], drawn[name]) for name in values},
        differences=differences,
        ours=mine,
        other=other,
        verdict=None if mine is None or other is None else _verdict(differences[other]),
    )


def _estimate(value: float, drawn: NDArray[np.float64]) -> Estimate:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(value), float(low), float(high))


def _verdict(difference: Estimate) -> Verdict:
    if difference.low > 0:
        return "best"
    return "worse" if difference.high < 0 else "level"
