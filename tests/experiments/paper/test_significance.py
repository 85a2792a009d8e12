import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from experiments.paper.distributions import auroc_of_low, position_test
from lrp4rag.util.errors import InputError


@pytest.fixture
def data():
    """40 rows of 6 positions; the hallucinated are lower at the last three, and some values are tied."""
    noise = np.random.default_rng(0)
    labels = np.arange(40) % 5 < 2
    values = noise.normal(size=(40, 6)).round(1)
    values[np.ix_(labels, [3, 4, 5])] -= 1.5
    return values, labels, np.array([f"s{k // 2}" for k in range(40)])


def p_by_position(low, high):
    return [mannwhitneyu(a, b, method="asymptotic").pvalue for a, b in zip(low.T, high.T, strict=True)]


def test_auroc_by_hand_and_against_sklearn(data):
    # Pairs (hallucinated, normal) of 1, 3 against 2, 3: lower in 1 < 2, 1 < 3; tied in 3 = 3; 3 > 2 is lost.
    both = np.array([True, True, False, False])
    assert auroc_of_low(np.array([1.0, 3.0, 2.0, 3.0]), both) == pytest.approx(2.5 / 4)
    assert np.isnan(auroc_of_low(np.ones((4, 2)), np.ones(4, dtype=bool))).all()
    values, labels, _ = data
    expected = [roc_auc_score(labels, -column) for column in values.T]
    np.testing.assert_allclose(auroc_of_low(values, labels), expected)


def test_p_on_all_rows_against_scipy_one_position_at_a_time(data):
    values, labels, groups = data
    test = position_test(values, labels, groups, draws=3, resamples=20)
    expected = p_by_position(values[labels], values[~labels])
    np.testing.assert_allclose(test.p, expected)
    # Benjamini and Yekutieli by hand: p m H_m / rank, made monotone from the largest down.
    order = np.argsort(expected)
    harmonic = sum(1 / k for k in range(1, 7))
    stepped = np.sort(expected) * 6 * harmonic / np.arange(1, 7)
    by_hand = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1)
    np.testing.assert_allclose(test.adjusted[order], by_hand)
    assert (test.adjusted[3:] < 0.05).all()
    assert (test.adjusted[:3] > 0.05).all()


def test_median_over_draws_by_hand(data):
    values, labels, groups = data
    test = position_test(values, labels, groups, draws=5, samples=10, resamples=5, seed=3)
    generator = np.random.default_rng(3)
    drawn = []
    for _ in range(5):
        low = values[labels][generator.choice(16, 10, replace=False)]
        high = values[~labels][generator.choice(24, 10, replace=False)]
        drawn.append(p_by_position(low, high))
    np.testing.assert_allclose(test.median_p, np.median(drawn, axis=0))
    assert (test.draws, test.samples) == (5, 10)


def test_the_smaller_class_limits_the_draws(data):
    values, labels, groups = data
    assert position_test(values, labels, groups, draws=2, resamples=5).samples == 16
    with pytest.raises(InputError, match="hallucinated and normal"):
        position_test(values, np.zeros(40, dtype=bool), groups)


def test_effect_and_its_interval(data):
    values, labels, groups = data
    test = position_test(values, labels, groups, draws=2, resamples=200)
    np.testing.assert_allclose(test.auroc, auroc_of_low(values, labels))
    assert (test.low <= test.auroc).all()
    assert (test.auroc <= test.high).all()
    assert (test.low[3:] > 0.5).all()
    np.testing.assert_allclose(test.rank_biserial, 2 * test.auroc - 1)
