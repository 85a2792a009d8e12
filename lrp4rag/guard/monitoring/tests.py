"""Tests of two samples, each with the size of the difference and its 95 % interval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lrp4rag.guard.policy.simulate import Share

Numbers = NDArray[np.float64]

FEW = 100
"""Values of a sample below which no distribution is assumed: labels are permuted."""
PERMUTATIONS = 9_999
RARE = 5
"""Expected answers of a category below which it is counted among the others."""
Z = 1.959964
"""Of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean or a share before and after, `after` less `before` with its 95 % interval, and the p-value of a
    `test` that both samples, of `counts` values, are of one distribution. Where all values are the same one,
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
    """Shares of categories before and after, those that changed most first, and a test of all of them."""

    parts: Mapping[str, Difference]
    p: float
    test: str


def compare_means(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Welch's t-test, or a permutation test of the difference of means where a sample is small. Both need two
    values or more."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    counts = (len(first), len(second))
    means = float(first.mean()), float(second.mean())
    if np.ptp(first) == 0 and np.ptp(second) == 0:  # nothing varies: only whether they are the same value
        varies = means[0] != means[1]
        p = float(stats.fisher_exact(np.diag(counts)).pvalue) if varies else 1.0
        value = means[1] - means[0]
        return Difference(*means, value, value, p, "Fisher", counts, varies)
    with warnings.catch_warnings():  # where one of them does not vary
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        welch = stats.ttest_ind(second, first, equal_var=False)
        low, high = welch.confidence_interval(0.95)
    if min(counts) >= FEW:
        return Difference(*means, float(low), float(high), float(welch.pvalue), "Welch", counts)
    permuted = stats.permutation_test(
        (second, first),
        _mean_difference,
        n_resamples=PERMUTATIONS,
        batch=max(1, 2_000_000 // sum(counts)),
        vectorized=True,
        random_state=np.random.default_rng(0),
    )
    return Difference(*means, float(low), float(high), float(permuted.pvalue), "permutation", counts)


def _mean_difference(one: Numbers, other: Numbers, axis: int = -1) -> Numbers:
    difference: Numbers = one.mean(axis=axis) - other.mean(axis=axis)
    return difference


def compare_shares(before: Share, after: Share) -> Difference:
    """A chi-squared test, or Fisher's where few are expected; the interval is Newcombe's. Both need a value
    or more."""
    counts = np.array([[one.part, one.count - one.part] for one in (before, after)])
    p, test = _counts_test(counts)
    low, high = _newcombe(before, after)
    first, second = before.part / before.count, after.part / after.count
    varies = 0 < before.part + after.part < before.count + after.count
    return Difference(first, second, low, high, p, test, (before.count, after.count), varies)


def compare_tables(before: Mapping[str, int], after: Mapping[str, int]) -> Table:
    """A chi-squared test of all categories together; rare ones count as one. Both need a value or more."""
    names = sorted(before.keys() | after.keys())
    totals = sum(before.values()), sum(after.values())
    parts = {
        name: compare_shares(Share(before.get(name, 0), totals[0]), Share(after.get(name, 0), totals[1]))
        for name in names
    }
    p, test = _counts_test(
        _without_rare(np.array([[one.get(n, 0) for n in names] for one in (before, after)]))
    )
    order = sorted(names, key=lambda name: (-abs(parts[name].value), name))
    return Table({name: parts[name] for name in order}, p, test)


def _without_rare(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """With one column for all categories of which fewer than `RARE` are expected in a sample."""
    expected = counts.sum(0) * (counts.sum(1).min() / counts.sum())
    rare = expected < RARE
    if rare.sum() < 2:
        return counts
    return np.column_stack([counts[:, ~rare], counts[:, rare].sum(1)])


def _counts_test(counts: NDArray[np.int64]) -> tuple[float, str]:
    """Of a table with a row a sample."""
    seen = counts[:, counts.sum(0) > 0]
    if seen.shape[1] < 2:
        return 1.0, "chi-squared"
    if seen.shape[1] == 2 and stats.contingency.expected_freq(seen).min() < RARE:
        return float(stats.fisher_exact(seen).pvalue), "Fisher"
    return float(stats.chi2_contingency(seen, correction=False).pvalue), "chi-squared"


def _newcombe(before: Share, after: Share) -> tuple[float, float]:
    """The 95 % interval of a difference of shares, of their Wilson intervals (Newcombe 1998, method 10)."""
    assert before.interval is not None
    assert after.interval is not None
    first, second = before.part / before.count, after.part / after.count
    (low, high), (lower, upper) = before.interval, after.interval
    value = second - first
    return (
        value - math.hypot(second - lower, high - first),
        value + math.hypot(upper - second, first - low),
    )


def heterogeneity(differences: Sequence[Difference]) -> float:
    """The p-value of Cochran's test that all differences are the same one, of different groups; 1 where fewer
    than two vary."""
    some = [(one.value, one.error**-2) for one in differences if one.error > 0]
    if len(some) < 2:
        return 1.0
    values, weights = np.array(some).T
    mean = float(np.average(values, weights=weights))
    return float(stats.chi2.sf(float(weights @ (values - mean) ** 2), len(some) - 1))


def holm(p: Sequence[float]) -> list[float]:
    """The p-values adjusted so that, whatever depends on what, a false alarm among all of them is no likelier
    than the level that they are compared with (Holm 1979)."""
    order = np.argsort(p)
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(one) for one in adjusted]
