"""Tests of two samples, against scipy, by hand, and where they have nothing to go by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lrp4rag.guard.monitoring.drift import (
    Difference,
    compare_means,
    compare_proportions,
    compare_tables,
    heterogeneity,
    holm,
)
from lrp4rag.guard.policy.simulate import Share


def test_means_of_large_samples() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.beta(1, 2, 400), rng.beta(1, 1.5, 300)
    found = compare_means(before, after)
    expected = stats.ttest_ind(after, before, equal_var=False)
    assert (found.p, found.test, found.counts) == (expected.pvalue, "Welch", (400, 300))
    assert (found.low, found.high) == tuple(expected.confidence_interval())
    assert found.value == pytest.approx(after.mean() - before.mean())
    assert found.error == pytest.approx(np.sqrt(before.var() / 400 + after.var() / 300), rel=0.01)


def test_means_of_what_does_not_vary() -> None:
    ones, halves = [1.0] * 30, [0.5] * 30
    same = compare_means(ones, ones)
    assert (same.p, same.varies, same.low, same.high) == (1.0, False, 0.0, 0.0)
    other = compare_means(ones, halves)
    assert other.p < 1e-10
    assert other.varies
    mixed = compare_means(ones, [*halves[:15], *ones[:15]])
    assert mixed.p < 1e-3


def test_shares() -> None:
    found = compare_proportions(Share(56, 70), Share(48, 80))
    # Newcombe (1998), table II, row (a): 56/70 - 48/80, method 10.
    assert (-found.high, -found.low) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    expected = stats.chi2_contingency([[56, 14], [48, 32]], correction=False).pvalue
    assert (found.p, found.test) == (expected, "chi-squared")
    few = compare_proportions(Share(0, 40), Share(6, 40))
    assert (few.p, few.test) == (stats.fisher_exact([[0, 40], [6, 34]]).pvalue, "Fisher")
    none = compare_proportions(Share(0, 40), Share(0, 60))
    assert (none.p, none.varies) == (1.0, False)


def test_tables() -> None:
    before = {"serve": 80, "mark": 15, "withhold": 5}
    found = compare_tables(before, {"serve": 60, "mark": 15, "withhold": 25})
    assert list(found.parts) == ["serve", "withhold", "mark"]
    assert found.parts["withhold"].value == pytest.approx(0.2)
    expected = stats.chi2_contingency([[80, 15, 5], [60, 15, 25]], correction=False).pvalue
    assert found.p == pytest.approx(expected)


def test_rare_categories_of_a_table_count_as_one() -> None:
    many = {str(k): 1 for k in range(8)}
    found = compare_tables({"serve": 92, **many}, {"serve": 100})
    assert found.p == pytest.approx(stats.fisher_exact([[8, 92], [0, 100]]).pvalue)
    assert compare_tables({"serve": 10}, {"serve": 20}).p == 1.0


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_heterogeneity() -> None:
    def one(value: float) -> Difference:
        return Difference(0, value, value - 0.1, value + 0.1, 0.5, "", (10, 10))

    assert heterogeneity([one(0.2), one(0.2), one(0.2)]) == 1.0
    assert heterogeneity([one(0.0), one(0.0), one(0.5)]) < 1e-10
    assert heterogeneity([one(0.0), one(0.05)]) > 0.1
    assert heterogeneity([one(0.3)]) == heterogeneity([]) == 1.0
