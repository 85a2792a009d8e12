"""Operating points against a loop over every threshold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from lrp4rag.classifiers.operating import FEWEST, by_set, faithful_quantiles, operating_points, threshold_at
from lrp4rag.util.errors import InputError


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    labels = draw.random(400) < 0.4
    return labels, np.round(np.clip(draw.normal(0.4 + 0.25 * labels, 0.2), 0, 1), 2)  # with ties


def test_each_point_does_what_its_name_says(data) -> None:
    labels, probabilities = data
    points = operating_points(labels, probabilities)
    flagged = {cut: probabilities >= cut for cut in np.unique(probabilities)}
    precision = {cut: precision_score(labels, flags) for cut, flags in flagged.items()}
    recall = {cut: recall_score(labels, flags) for cut, flags in flagged.items()}
    surplus = {cut: abs(flags.sum() / labels.sum() - 1) for cut, flags in flagged.items()}
    assert surplus[points["balanced"].threshold] == min(surplus.values()) < 0.1
    assert points["high-precision"].threshold == min(cut for cut in flagged if precision[cut] >= 0.8)
    assert points["high-recall"].threshold == max(cut for cut in flagged if recall[cut] >= 0.9)
    for point in points.values():
        assert point.precision == pytest.approx(precision[point.threshold])
        assert point.recall == pytest.approx(recall[point.threshold])
        assert point.false_positive_rate == pytest.approx(flagged[point.threshold][~labels].mean())


def test_a_false_alarm_that_ranks_highest_is_not_where_errors_balance() -> None:
    labels = np.array([False, *[True] * 10, *[False] * 10])
    point = operating_points(labels, np.linspace(1, 0, 21))["balanced"]
    assert point.precision == point.recall == pytest.approx(0.9)


def test_where_no_threshold_is_precise_enough_the_most_precise_is_taken() -> None:
    labels = np.array([True, False] * 20)
    probabilities = np.minimum(np.linspace(0, 1, 40), 38 / 39)  # the highest two are tied
    precisions = [precision_score(labels, probabilities >= cut) for cut in np.unique(probabilities)]
    assert operating_points(labels, probabilities)["high-precision"].precision == max(precisions) < 0.8


def test_a_target_rate_is_kept(data) -> None:
    labels, probabilities = data
    draw = np.random.default_rng(1)
    smooth = np.clip(probabilities + draw.uniform(-0.005, 0.005, len(labels)), 0, 1)
    quantiles = faithful_quantiles(labels, smooth)
    for rate in (0.01, 0.05, 0.2, 0.5):
        assert (smooth[~labels] >= threshold_at(rate, quantiles)).mean() == pytest.approx(rate, abs=0.01)


def test_of_several_sets_the_one_with_most_false_alarms_counts(data) -> None:
    labels, probabilities = data
    higher = np.clip(probabilities[~labels] + 0.2, 0, 1)
    alone, both = operating_points(labels, probabilities), operating_points(labels, probabilities, [higher])
    point = both["one-in-ten"]
    assert (higher >= point.threshold).mean() == point.false_positive_rate <= 0.1
    assert point.threshold > alone["one-in-ten"].threshold
    assert point.recall == pytest.approx((probabilities[labels] >= point.threshold).mean())
    cut = threshold_at(0.2, faithful_quantiles(labels, probabilities, [higher]))
    assert (higher >= cut).mean() == pytest.approx(0.2, abs=0.05)
    assert operating_points(labels, probabilities, [higher - 0.3]) == alone


def test_sets_are_parted() -> None:
    sets = np.array([*["b"] * 4, *["a"] * (FEWEST + 1), "c"])
    labels = np.array([False, True, True, False, True, *[False] * FEWEST, False])
    probabilities = np.linspace(0, 1, len(sets))
    truth, first, others = by_set(labels, probabilities, sets)
    np.testing.assert_array_equal(truth, labels[:4])
    np.testing.assert_array_equal(first, probabilities[:4])
    (other,) = others  # one row of "c" says nothing
    np.testing.assert_array_equal(other, probabilities[5 : FEWEST + 5])


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_a_rate_outside_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        threshold_at(rate, [0.0, 1.0])


def test_one_class_has_no_points() -> None:
    with pytest.raises(ValueError, match="both classes"):
        operating_points(np.ones(3, dtype=bool), np.array([0.1, 0.2, 0.3]))
