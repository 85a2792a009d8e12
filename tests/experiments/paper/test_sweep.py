import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from experiments.paper.thresholds import SCALINGS, row_means, sweep, threshold_method
from lrp4rag.classifiers.calibration import grouped_folds

LABELS = np.array([True, True, False, False, False])
SCALED = np.array([0.1, 0.4, 0.3, 0.6, 0.9])


@pytest.fixture
def rows():
    """Sixty rows of any length; the hallucinated have less relevance, and are more peaked."""
    noise = np.random.default_rng(0)
    labels = noise.random(60) < 0.5
    vectors = []
    for label in labels:
        row = noise.normal(1, 0.3, noise.integers(20, 300))
        if label:
            row = row * 0.5
            row[len(row) // 2] = 4
        vectors.append(row)
    return vectors, labels, np.array([f"s{k}" for k in range(60)])


def test_sweep_by_hand():
    curve = sweep(SCALED, LABELS, np.array([0.0, 0.2, 0.5, 1.0]))
    np.testing.assert_allclose(curve.accuracy, [3 / 5, 4 / 5, 4 / 5, 2 / 5])
    np.testing.assert_allclose(curve.precision, [np.nan, 1, 2 / 3, 2 / 5])
    np.testing.assert_allclose(curve.recall, [0, 1 / 2, 1, 1])
    np.testing.assert_allclose(curve.f1, [0, 2 / 3, 4 / 5, 4 / 7])
    assert curve.best() == 0.5
    assert sweep(SCALED, LABELS, np.array([0.45, 0.5])).best() == 0.45  # the lower of two equals
    assert sweep(SCALED, LABELS, np.array([0.1])).recall == 0  # a mean at the threshold is not flagged


def test_means_across_rows_are_in_logits():
    np.testing.assert_allclose(row_means([np.arange(200.0), np.full(37, 3.0)], "across"), [99.5, 3.0])


def test_means_within_rows_by_hand():
    # 110 values are their own resampling. The ends are cut; what is left runs from 0 to 1, peak included.
    row = np.full(110, 2.0)
    row[[0, 109]] = 1000.0
    row[50], row[60] = 6.0, -2.0
    assert row_means([row], "within")[0] == pytest.approx((98 * 0.5 + 1.0 + 0.0) / 100)
    # Only the shape counts, not how much relevance there is.
    assert row_means([row * 7 - 3], "within")[0] == pytest.approx(0.5)
    assert row_means([np.ones(300)], "within")[0] == 0.5


@pytest.mark.parametrize("scaling", SCALINGS)
def test_reported_threshold_is_the_best_on_its_own_rows(rows, scaling):
    method = threshold_method("response", *rows, scaling=scaling, resamples=50)
    f1 = method.reported.metrics["f1"]
    assert method.reported.thresholds == (method.sweep.best(),)
    assert f1.value == pytest.approx(np.max(method.sweep.f1))
    assert f1.low <= f1.value <= f1.high
    assert f1.value >= method.honest.metrics["f1"].value
    assert f1.value >= method.flag_everything
    assert method.prevalence == pytest.approx(rows[1].mean())
    assert method.flag_everything == pytest.approx(f1_score(rows[1], np.ones(60)))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_honest_threshold_never_sees_its_fold(rows, scaling):
    vectors, labels, groups = rows
    method = threshold_method("response", vectors, labels, groups, scaling=scaling, resamples=20)
    assert len(method.honest.thresholds) == 5
    _, test = grouped_folds(labels, groups, 5, 0)[2]
    # Other values in the third fold's rows leave its threshold (and, across rows, its scale) as it was.
    changed = [row * -50 if k in test else row for k, row in enumerate(vectors)]
    again = threshold_method("response", changed, labels, groups, scaling=scaling, resamples=20)
    assert again.honest.thresholds[2] == method.honest.thresholds[2]


def test_honest_metrics_by_hand(rows):
    vectors, labels, groups = rows
    means = row_means(vectors, "within")
    flagged = np.zeros(60, dtype=bool)
    for train, test in grouped_folds(labels, groups, 5, 0):
        grid = np.arange(101) / 100
        scores = [f1_score(labels[train], means[train] < threshold) for threshold in grid]
        flagged[test] = means[test] < grid[int(np.argmax(scores))]
    method = threshold_method("response", vectors, labels, groups, resamples=20)
    assert method.honest.metrics["f1"].value == pytest.approx(f1_score(labels, flagged))
    assert method.honest.metrics["accuracy"].value == pytest.approx(accuracy_score(labels, flagged))
