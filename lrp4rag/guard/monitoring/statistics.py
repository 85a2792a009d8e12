"""Two samples compared: a test of scipy, the size of the difference and its 95 % interval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lrp4rag.guard.policy.simulate import Share

RARE = 5
"""Expected answers of a category below which it is counted among the others."""
Z = float(stats.norm.isf(0.025))
"""The normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean or a proportion before and after, `after` less `before` with its 95 % interval, and the p-value
    of a `test` that both samples, of `counts` values, are of one distribution. Where all values are equal,
    nothing `varies`: no test could have found anything."""

    before: float
    after: float
    low: float
    high: float
    p: float
    test: str
    counts: tuple[int, int]
    varies: bool = True

    @property
    def value(self) -> float:
        return self.after - self.before

    @property
    def error(self) -> float:
        """The standard error that the interval is made of."""
        return (self.high - self.low) / (2 * Z)


@dataclass(frozen=True, slots=True)
class Table:
    """Proportions of categories before and after, those that changed most first, and a test of all."""

    parts: Mapping[str, Difference]
    p: float
    test: str


def compare_means(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Welch's t-test. Both samples need two values or more."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    counts, means = (len(first), len(second)), (float(first.mean()), float(second.mean()))
    if np.ptp(first) == 0 and np.ptp(second) == 0:  # only whether they are the same value
        varies, value = means[0] != means[1], means[1] - means[0]
        p = float(stats.fisher_exact(np.diag(counts)).pvalue) if varies else 1.0
        return Difference(*means, value, value, p, "Fisher", counts, varies)
    with warnings.catch_warnings():  # where one of them does not vary
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        welch = stats.ttest_ind(second, first, equal_var=False)
        low, high = welch.confidence_interval(0.95)
    return Difference(*means, float(low), float(high), float(welch.pvalue), "Welch", counts)


def compare_proportions(before: Share, after: Share) -> Difference:
    """Return a chi-squared test, or Fisher's where few are expected; the interval is Newcombe's (1998, method
    10). Both need a value or more."""
    p, test = _counts_test(np.array([[share.part, share.count - share.part] for share in (before, after)]))
    assert before.interval is not None
    assert after.interval is not None
    first, second = before.part / before.count, after.part / after.count
    (low, high), (lower, upper) = before.interval, after.interval
    value = second - first
    interval = (
        value - math.hypot(second - lower, high - first),
        value + math.hypot(upper - second, first - low),
    )
    varies = 0 < before.part + after.part < before.count + after.count
    return Difference(first, second, *interval, p, test, (before.count, after.count), varies)


def compare_tables(before: Mapping[str, int], after: Mapping[str, int]) -> Table:
    """Return a chi-squared test of all categories together; rare ones count as one. Both need a value or
    more."""
    names = sorted(before.keys() | after.keys())
    counts = np.array([[sample.get(name, 0) for name in names] for sample in (before, after)])
    totals = counts.sum(1)
    parts = {
        name: compare_proportions(
            *(Share(int(part), int(total)) for part, total in zip(column, totals, strict=True))
        )
        for name, column in zip(names, counts.T, strict=True)
    }
    rare = counts.sum(0) * totals.min() / counts.sum() < RARE
    if rare.sum() > 1:
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(1)])
    p, test = _counts_test(counts)
    order = sorted(names, key=lambda name: (-abs(parts[name].value), name))
    return Table({name: parts[name] for name in order}, p, test)


def _counts_test(counts: NDArray[np.int64]) -> tuple[float, str]:
    """Return the p-value of a table with one row per sample, and the name of the test."""
    counts = counts[:, counts.sum(0) > 0]
    if counts.shape[1] < 2:
        return 1.0, "chi-squared"
    if counts.shape[1] == 2 and stats.contingency.expected_freq(counts).min() < RARE:
        return float(stats.fisher_exact(counts).pvalue), "Fisher"
    return float(stats.chi2_contingency(counts, correction=False).pvalue), "chi-squared"


def heterogeneity(differences: Sequence[Difference]) -> float:
    """Return the p-value of Cochran's test that the differences of several groups are equal; 1 where fewer
    than two vary."""
    pairs = [(difference.value, difference.error**-2) for difference in differences if difference.error > 0]
    if len(pairs) < 2:
        return 1.0
    values, weights = np.array(pairs).T
    mean = float(np.average(values, weights=weights))
    return float(stats.chi2.sf(float(weights @ (values - mean) ** 2), len(pairs) - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Return the p-values adjusted so that a false alarm among all of them is no likelier than the level that
    they are compared with (Holm 1979)."""
    order = np.argsort(p)
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]
