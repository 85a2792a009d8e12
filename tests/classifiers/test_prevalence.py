"""Prevalence: the log odds shift by one number, and which number, expectation maximisation finds."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.classifiers.prevalence import (
    FEWEST,
    LOWEST,
    RunningPrevalence,
    at_prevalence,
    check_prevalence,
    estimated_prevalence,
    require_enough,
)
from lrp4rag.util.errors import InputError

GRID = np.linspace(0.01, 0.99, 99)
EVIDENCE = 2.0
"""How far apart the means of scores of both classes are, in their standard deviation."""


def drawn(prevalence: float, count: int = 5000, trained: float = 0.4, seed: int = 0) -> np.ndarray:
    """Probabilities that are right at `trained`, of responses of which `prevalence` are hallucinated.

    Scores are normal with one variance, so log odds are linear in them.
    """
    draw = np.random.default_rng(seed)
    labels = draw.random(count) < prevalence
    scores = draw.normal(np.where(labels, EVIDENCE / 2, -EVIDENCE / 2))
    return 1 / (1 + np.exp(-EVIDENCE * scores) * (1 - trained) / trained)


# Shifts.


@pytest.mark.parametrize("trained", [0.05, 0.4, 0.9])
def test_at_the_trained_prevalence_nothing_changes(trained: float) -> None:
    np.testing.assert_allclose(at_prevalence(GRID, trained, trained), GRID, rtol=1e-12)


@pytest.mark.parametrize(
    ("probability", "trained", "prevalence", "expected"),
    [
        (0.5, 0.5, 0.1, 0.1),  # no evidence: the prevalence itself
        (0.2, 0.2, 0.7, 0.7),
        (0.8, 0.5, 0.2, 0.5),  # odds 4, and a quarter of them
        (0.75, 0.5, 0.75, 0.9),  # odds 3, times 3
    ],
)
def test_odds_are_multiplied(probability: float, trained: float, prevalence: float, expected: float) -> None:
    assert at_prevalence([probability], trained, prevalence) == pytest.approx(expected)


@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.95])
def test_a_shift_back_undoes_it(prevalence: float) -> None:
    there = at_prevalence(GRID, 0.4, prevalence)
    np.testing.assert_allclose(at_prevalence(there, prevalence, 0.4), GRID, rtol=1e-9)


@pytest.mark.parametrize("prevalence", [LOWEST, 0.5, 1 - LOWEST])
def test_certainty_stays_finite_and_certain(prevalence: float) -> None:
    found = at_prevalence([0.0, 1.0], 0.4, prevalence)
    assert found == pytest.approx([0, 1], abs=1e-6)
    assert np.isfinite(found).all()


# Estimates.


@pytest.mark.parametrize("trained", [0.3, 0.5])
@pytest.mark.parametrize("prevalence", [0.05, 0.25, 0.6])
def test_a_prevalence_is_found_from_unlabelled_responses(prevalence: float, trained: float) -> None:
    found = estimated_prevalence(drawn(prevalence, trained=trained), trained)
    assert found == pytest.approx(prevalence, abs=0.03)


def test_shifted_by_the_estimate_probabilities_are_right_on_average() -> None:
    given = drawn(0.1)
    estimate = estimated_prevalence(given, 0.4)
    assert at_prevalence(given, 0.4, estimate).mean() == pytest.approx(estimate, abs=1e-3)


def test_probabilities_without_evidence_tell_nothing() -> None:
    assert estimated_prevalence(np.full(100, 0.4), 0.4) == pytest.approx(0.4)


@pytest.mark.parametrize(("value", "expected"), [(0.0, LOWEST), (1.0, 1 - LOWEST)])
def test_certain_probabilities_give_the_ends_of_the_range(value: float, expected: float) -> None:
    assert estimated_prevalence(np.full(100, value), 0.4) == pytest.approx(expected)


@pytest.mark.parametrize("count", [0, 1, FEWEST - 1])
def test_too_few_responses_are_refused(count: int) -> None:
    with pytest.raises(
        InputError, match=rf"from {FEWEST} responses or more, and there are {count};"
    ) as caught:
        estimated_prevalence(np.full(count, 0.5), 0.4)
    assert caught.value.field == "prevalence"
    with pytest.raises(InputError, match=f"there are {count};"):
        require_enough(count)


# What can be given.


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, 1.5, 30, float("nan"), float("inf")])
def test_what_is_no_part_of_the_responses_is_refused(prevalence: float) -> None:
    with pytest.raises(InputError, match=r"a prevalence is from 0\.001 to 0\.999, got") as caught:
        check_prevalence(prevalence)
    assert caught.value.field == "prevalence"


# Streams.


@pytest.mark.parametrize("prevalence", [0.05, 0.25, 0.6])
def test_a_running_estimate_comes_close_to_that_of_the_batch(prevalence: float) -> None:
    given, running = drawn(prevalence, 3000), RunningPrevalence(0.4)
    estimates = []
    for probability in given:
        running.update(probability)
        estimates.append(running.prevalence)
    assert running.responses == len(given)
    assert np.mean(estimates[-1000:]) == pytest.approx(estimated_prevalence(given, 0.4), abs=0.05)


def test_a_running_estimate_follows_a_change() -> None:
    running = RunningPrevalence(0.4, window=200)
    for prevalence in (0.05, 0.5):
        for probability in drawn(prevalence, 2000):
            running.update(probability)
        assert running.prevalence == pytest.approx(prevalence, abs=0.12)


def test_each_probability_is_given_at_the_estimate() -> None:
    running = RunningPrevalence(0.4)
    for probability in (0.0, 1.0, 0.3, *drawn(0.1, 50)):
        shifted = running.update(float(probability))
        assert shifted == pytest.approx(at_prevalence(probability, 0.4, running.prevalence))
        assert LOWEST <= running.prevalence <= 1 - LOWEST


def test_nothing_but_probabilities_moves_it() -> None:
    running = RunningPrevalence(0.4)
    for value in (float("nan"), -0.1, 1.1, float("inf")):
        with pytest.raises(InputError, match="a probability is from 0 to 1, got"):
            running.update(value)
    assert (running.prevalence, running.responses) == (0.4, 0)


@pytest.mark.parametrize(
    "given", [{"trained": 0.0}, {"trained": float("nan")}, {"trained": 0.4, "window": 3}]
)
def test_a_running_estimate_begins_somewhere(given: dict[str, float]) -> None:
    with pytest.raises(InputError):
        RunningPrevalence(**given)  # type: ignore[arg-type]
