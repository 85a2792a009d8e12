import numpy as np
import pytest

from lrp4rag.experiments.statistics import (
    bootstrap,
    expected_calibration_error,
    response_metrics,
    token_metrics,
)

LABELS = np.array([True, True, True, False, False, False, False, False])
SCORES = np.array([0.9, 0.8, 0.3, 0.7, 0.2, 0.1, 0.1, 0.0])


def test_metrics_by_hand():
    # At 0.5: 2 hits, 1 false alarm, 1 miss, 4 passed. 14 of 15 pairs are ranked right.
    metrics = response_metrics(LABELS, SCORES, 0.5)
    assert metrics["auroc"] == pytest.approx(14 / 15)
    assert metrics["auprc"] == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert metrics["accuracy"] == pytest.approx(6 / 8)
    assert metrics["precision"] == pytest.approx(2 / 3)
    assert metrics["recall"] == pytest.approx(2 / 3)
    assert metrics["f1"] == pytest.approx(2 / 3)
    assert metrics["balanced_accuracy"] == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_calibration_error_by_hand():
    # Two bins of two rows: mean 0.25 and no hit, mean 0.95 and both hit.
    labels = np.array([False, False, True, True])
    probabilities = np.array([0.22, 0.28, 0.92, 0.98])
    assert expected_calibration_error(labels, probabilities) == pytest.approx((0.25 + 0.05) / 2)
    assert expected_calibration_error(np.array([True] * 10), np.ones(10)) == 0
    assert expected_calibration_error(np.array([False] * 10), np.ones(10)) == 1
    half = np.array([True, False] * 50)
    assert expected_calibration_error(half, np.full(100, 0.5)) == pytest.approx(0)


def test_what_is_undefined_is_nan():
    metrics = response_metrics(np.array([False, False]), np.array([0.1, 0.2]), 0.5)
    assert np.isnan(metrics["auroc"])
    assert np.isnan(metrics["recall"])
    assert metrics["accuracy"] == 1


def test_token_metrics_take_their_own_flags():
    metrics = token_metrics(LABELS, SCORES, LABELS)
    assert metrics["f1"] == 1
    assert metrics["auroc"] == pytest.approx(14 / 15)


def test_interval_covers_the_truth_and_shrinks_with_data():
    def width(count):
        generator = np.random.default_rng(1)
        hits = generator.random(count) < 0.7
        groups = np.arange(count).astype(str)
        interval = bootstrap(lambda rows: {"rate": hits[rows].mean()}, groups, resamples=300)["rate"]
        assert interval.low < 0.7 < interval.high
        assert interval.value == pytest.approx(hits.mean())
        return interval.high - interval.low

    # The width of a binomial interval: 2 * 1.96 * sqrt(p (1 - p) / n).
    assert width(400) == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 400), rel=0.2)
    assert width(1600) < 0.65 * width(400)


def test_rows_of_one_source_are_drawn_together():
    """Ten copies of each row are not ten times the evidence."""
    hits = np.random.default_rng(0).random(100) < 0.5
    single = bootstrap(lambda rows: {"rate": hits[rows].mean()}, np.arange(100).astype(str), resamples=400)[
        "rate"
    ]
    copies = np.repeat(hits, 10)
    grouped = bootstrap(
        lambda rows: {"rate": copies[rows].mean()}, np.repeat(np.arange(100), 10).astype(str), resamples=400
    )["rate"]
    assert grouped.high - grouped.low == pytest.approx(single.high - single.low, rel=0.15)


def test_an_undefined_metric_has_no_interval():
    interval = bootstrap(lambda rows: {"x": float("nan")}, np.array(["a", "b"]), resamples=10)["x"]
    assert (interval.value, interval.low, interval.high) == (None, None, None)
