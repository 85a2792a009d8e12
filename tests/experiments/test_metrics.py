"""The research's metrics: paired comparisons of detectors, draws of an outcome, reliability."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from experiments.metrics import auroc_draws, bootstrap, compare, compare_tokens, reliability
from lrp4rag.training.metrics import intervals, intervals_of, outcome_metrics, token_intervals
from lrp4rag.training.validation import Outcome
from tests.training.test_metrics import ece, many, response_metrics


def test_a_general_bootstrap_agrees_and_leaves_out_what_is_undefined():
    labels, groups, outcome = many(repeats=1)
    probabilities = outcome.probabilities[0]
    general = bootstrap(
        lambda rows: response_metrics(labels[rows], probabilities[rows]), groups, resamples=40
    )
    for name, other in intervals(labels, probabilities, groups, 0.5, 40).items():
        assert general[name].value == pytest.approx(other.value)
        assert (general[name].low, general[name].high) == pytest.approx((other.low, other.high))
    nothing = bootstrap(lambda rows: {"x": float("nan")}, groups, resamples=10)["x"]
    assert (nothing.value, nothing.low, nothing.high) == (None, None, None)


def test_comparison_is_paired():
    """Two detectors that agree on nearly all rows differ by much less than either is known to."""
    labels, groups, outcome = many(rows=300, sources=100)
    changed = outcome.probabilities.copy()
    changed[:, :60] -= np.where(labels[:60], 0.1, -0.1)
    worse = Outcome(changed, changed >= 0.5)
    difference = compare(outcome, worse, labels, groups, resamples=200)["auroc"]
    alone = [outcome_metrics(each, labels, groups, resamples=200)["auroc"] for each in (outcome, worse)]
    assert difference.value == pytest.approx(alone[0].value - alone[1].value)
    assert 0 < difference.low < difference.value < difference.high
    assert difference.high - difference.low < 0.5 * (alone[0].high - alone[0].low)
    nothing = compare(outcome, outcome, labels, groups, resamples=20)
    assert {(row.value, row.low, row.high) for row in nothing.values()} == {(0, 0, 0)}
    swapped = compare(worse, outcome, labels, groups, resamples=200)["auroc"]
    assert swapped.value == pytest.approx(-difference.value)
    with pytest.raises(ValueError, match="as many repeats"):
        compare(outcome, Outcome(changed[:1], worse.flagged[:1]), labels, groups, resamples=10)


def test_comparison_of_tokens_is_paired():
    labels, groups, outcome = many(rows=300, sources=100)
    scores, flagged = outcome.probabilities[0], outcome.flagged[0]
    changed = scores.copy()
    changed[:60] -= np.where(labels[:60], 0.1, -0.1)
    less = compare_tokens(labels, (scores, flagged), (changed, changed >= 0.5), groups, 200)
    alone = token_intervals(labels, scores, flagged, groups, 200)
    other = token_intervals(labels, changed, changed >= 0.5, groups, 200)
    for name in ("auroc", "f1"):
        assert less[name].value == pytest.approx(alone[name].value - other[name].value)
    assert less["auroc"].high - less["auroc"].low < 0.5 * (alone["auroc"].high - alone["auroc"].low)
    same = compare_tokens(labels, (scores, flagged), (scores, flagged), groups, 20)
    assert {(one.value, one.low, one.high) for one in same.values()} == {(0, 0, 0)}


def test_draws_of_an_outcome_give_the_same_difference_and_wider_intervals_at_a_higher_level():
    draw = np.random.default_rng(3)
    labels, groups = draw.random(60) < 0.4, np.repeat(np.arange(20), 3).astype(str)
    first, second = (Outcome(draw.random((2, 60)), np.zeros((2, 60), bool)) for _ in range(2))
    gained = auroc_draws(first, labels, groups, resamples=50) - auroc_draws(
        second, labels, groups, resamples=50
    )
    assert gained.shape == (2, 51)
    expected = compare(first, second, labels, groups, resamples=50)["auroc"]
    assert intervals_of({"auroc": gained})["auroc"] == expected
    wider = intervals_of({"auroc": gained}, 0.99)["auroc"]
    assert wider.low < expected.low < expected.high < wider.high
    assert np.isnan(auroc_draws(first, np.ones(60, bool), groups, resamples=5)).all()


def test_reliability_is_that_of_scikit_learn_and_sums_up_to_the_error():
    rng = np.random.default_rng(0)
    labels, probabilities = rng.random(200) < 0.5, rng.random(200) * 0.8
    bins = reliability(labels, probabilities)
    frequency, mean = calibration_curve(labels, probabilities, n_bins=10)
    filled = bins.count > 0
    assert filled.tolist() == [True] * 8 + [False] * 2
    assert np.isnan(bins.frequency[~filled]).all()
    assert bins.frequency[filled] == pytest.approx(frequency)
    assert bins.probability[filled] == pytest.approx(mean)
    assert bins.edges.tolist() == pytest.approx(np.linspace(0, 1, 11).tolist())
    gaps = np.abs(bins.frequency - bins.probability)[filled] * bins.count[filled] / 200
    assert gaps.sum() == pytest.approx(ece(labels, probabilities))
    twice = reliability(labels, np.stack([probabilities, probabilities]))  # all repeats count
    assert (twice.count == 2 * bins.count).all()
    np.testing.assert_array_equal(twice.frequency, bins.frequency)
