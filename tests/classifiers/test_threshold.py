"""The threshold on mean relevance, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.classifiers.threshold import ThresholdClassifier


def rows_with(means: list[float]) -> np.ndarray:
    """Rows of two values around each mean."""
    return np.array([[mean - 1, mean + 1] for mean in means])


def test_the_threshold_with_the_best_accuracy_on_the_training_rows() -> None:
    """Means 0, 1, 2, 8 and 10 become 0, 0.1, 0.2, 0.8 and 1: above 0.2 and up to 0.8, no row is wrong."""
    labels = np.array([True, True, True, False, False])
    model = ThresholdClassifier(trim=0).fit(rows_with([0, 1, 2, 8, 10]), labels)
    assert (model.low_, model.high_) == (0, 10)
    assert model.threshold_ == pytest.approx(0.51)  # 0.21, 0.22 ... 0.80 are equally good: the middle one
    assert model.predict(rows_with([5.0, 5.2, -100])).tolist() == [True, False, True]
    np.testing.assert_allclose(model.decision_function(rows_with([0, 5.1, 10, 20])), [0.51, 0, -0.49, -1.49])


def test_extremes_do_not_set_the_scale() -> None:
    means = [*range(101), 1e6]
    labels = np.arange(102) < 30
    model = ThresholdClassifier(trim=0.02).fit(rows_with(list(map(float, means))), labels)
    np.testing.assert_allclose([model.low_, model.high_], np.quantile(means, [0.02, 0.98]))
    assert model.high_ < 100
    assert model.score(rows_with(list(map(float, means))), labels) == 1


def test_the_direction_is_not_learnt() -> None:
    """Where low means are faithful, nothing (or everything) is flagged rather than the other side."""
    labels = np.array([False] * 6 + [True] * 4)
    model = ThresholdClassifier(trim=0).fit(rows_with([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), labels)
    assert not model.predict(rows_with([1, 5, 10])).any()
    assert np.diff(model.decision_function(rows_with([1, 5, 10]))).max() < 0


def test_a_sequence_counts_as_a_whole() -> None:
    sequences = np.random.default_rng(0).normal(size=(20, 5, 3))
    labels = np.arange(20) % 2 == 0
    whole, flat = ThresholdClassifier(), ThresholdClassifier()
    whole.fit(sequences, labels)
    flat.fit(sequences.reshape(20, 15), labels)
    np.testing.assert_allclose(
        whole.decision_function(sequences), flat.decision_function(sequences.reshape(20, 15)), atol=1e-12
    )


def test_equal_rows_and_wrong_trims() -> None:
    labels = np.array([True, True, False])
    model = ThresholdClassifier().fit(rows_with([2, 2, 2]), labels)
    assert model.predict(rows_with([2])).tolist() == [True]  # two of three rows are
    with pytest.raises(ValueError, match="trim must be at least 0"):
        ThresholdClassifier(trim=0.5).fit(rows_with([1, 2, 3]), labels)
