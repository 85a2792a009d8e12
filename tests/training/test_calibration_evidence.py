"""Calibration at other prevalences, and false alarms by length, against answers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.classifiers.prevalence import PREVALENCES
from lrp4rag.training.calibration_evidence import alarms_by_length, calibration

Errors = dict[float, tuple[float, float, float]]


def errors(labels: np.ndarray, probabilities: np.ndarray, trained: float) -> Errors:
    groups = np.arange(len(labels)).astype(str)
    found = calibration(labels, probabilities, trained, groups, generator_known=True, resamples=3)
    return {
        one.prevalence: (one.as_it_is.value, one.given.value, one.estimated.value)  # type: ignore[misc]
        for one in found
    }


@pytest.fixture(scope="module")
def shares() -> Errors:
    """Of probabilities that are right where they were drawn."""
    draw = np.random.default_rng(0)
    probabilities = 1 / (1 + np.exp(-draw.normal(-0.4, 2.0, 30_000)))
    labels = draw.random(30_000) < probabilities
    return errors(labels, probabilities, float(labels.mean()))


def test_calibration_is_given_at_each_prevalence(shares: Errors) -> None:
    assert tuple(shares) == PREVALENCES == (0.1, 0.25, 0.5)


@pytest.mark.parametrize("prevalence", PREVALENCES)
@pytest.mark.parametrize("way", [1, 2], ids=["given", "estimated"])
def test_shifted_probabilities_are_right(shares: Errors, prevalence: float, way: int) -> None:
    assert shares[prevalence][way] < 0.02


def test_probabilities_as_they_are_are_too_high_where_faults_are_rare(shares: Errors) -> None:
    """In training they were about 44 %."""
    assert shares[0.1][0] > 0.1
    assert shares[0.1][0] > 1.5 * shares[0.25][0] > 3 * shares[0.5][0]


def test_calibration_is_the_same_again() -> None:
    labels = np.arange(400) % 3 == 0
    probabilities = np.linspace(0.02, 0.98, 400)
    assert errors(labels, probabilities, 0.33) == errors(labels, probabilities, 0.33)


@pytest.mark.parametrize("bad", [30, 370])
def test_few_rows_of_a_class_are_enough(bad: int) -> None:
    labels = np.arange(400) < bad
    found = errors(labels, np.where(labels, 0.8, 0.2), bad / 400)
    assert all(0 <= value <= 1 for values in found.values() for value in values)


def test_a_prevalence_with_too_few_rows_is_left_out() -> None:
    labels = np.arange(37) < 20
    assert tuple(errors(labels, np.where(labels, 0.8, 0.2), 0.5)) == (0.25, 0.5)
    assert errors(labels[14:28], np.where(labels[14:28], 0.8, 0.2), 0.5) == {}


def test_faithful_responses_are_parted_by_length() -> None:
    labels = np.array([0, 0, 0, 0, 0, 0, 1, 1], dtype=bool)
    flagged = np.array([0, 1, 1, 1, 0, 0, 1, 1], dtype=bool)
    lengths = np.array([10, 50, 90, 80, 40, 20, 15, 85])
    found = alarms_by_length(lengths, labels, flagged, np.arange(8).astype(str), resamples=20)
    parts = [(one.low, one.high, one.responses, one.flagged.value) for one in found]
    assert parts == [(10, 20, 2, 0.0), (40, 50, 2, 0.5), (80, 90, 2, 1.0)]
