"""Parts of a response and their threshold; from scores to probabilities and decisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from experiments.systems.scoring import (
    NO_PARTS,
    Calibration,
    PartScores,
    generator_shifts,
    log_odds,
    threshold_of,
)
from lrp4rag.classifiers.calibration import Sigmoid
from lrp4rag.example import Label
from tests.tiny import bridge_example

ONE = np.array(["g"] * 60)
LABELS = np.arange(60) % 3 == 0
SCORES = np.random.default_rng(0).normal(LABELS * 2.0, 1.0)  # they tell something


def test_probabilities_are_platts_and_as_many_are_flagged_as_are_hallucinated():
    calibration = Calibration.of(SCORES, LABELS, ONE, rows=np.arange(60) * 2)
    expected = Sigmoid.fit(SCORES, LABELS).predict(SCORES)
    assert calibration.probabilities(SCORES, ONE) == pytest.approx(expected)
    assert calibration.out_of_fold.probabilities == pytest.approx(expected)
    assert calibration.out_of_fold.rows.tolist() == list(range(0, 120, 2))
    assert calibration.shifts == {}
    flagged = expected >= calibration.threshold
    assert flagged.sum() == LABELS.sum() == 20
    assert expected[flagged].min() == pytest.approx(calibration.threshold)


def test_a_generator_that_hallucinates_more_has_higher_odds():
    generators = np.array(["a", "b"] * 30)
    labels = (np.arange(60) % 4 == 1) | (np.arange(60) % 12 == 0)  # half of b's, a sixth of a's
    calibration = Calibration.of(SCORES, labels, generators)
    assert calibration.shifts["a"] < 0 < calibration.shifts["b"]
    a, b, other = logit(calibration.probabilities(np.zeros(3), np.array(["a", "b", "new"])))
    assert (a - other, b - other) == pytest.approx((calibration.shifts["a"], calibration.shifts["b"]))
    assert other == pytest.approx(calibration.offset)


def test_no_answer_is_the_rate_and_teaches_no_more_than_that():
    scores, labels = np.append(SCORES, np.full(40, np.nan)), np.append(LABELS, np.ones(40, dtype=bool))
    known = Calibration.of(SCORES, LABELS, ONE)
    calibration = Calibration.of(scores, labels, np.array(["g"] * 100))
    assert (calibration.slope, calibration.offset) == (known.slope, known.offset)
    silent, other = calibration.probabilities(np.array([np.nan, 0.3]), np.array(["g", "g"]))
    assert silent == 0.6
    assert other == pytest.approx(expit(known.slope * 0.3 + known.offset))
    assert calibration.out_of_fold.probabilities[60:].tolist() == [0.6] * 40


@pytest.mark.parametrize(("hallucinated", "flagged"), [(20, False), (40, True)])
def test_where_nothing_is_known_the_more_frequent_label_is_given(hallucinated, flagged):
    calibration = Calibration.of(np.full(60, np.nan), np.arange(60) < hallucinated, ONE)
    (probability,) = calibration.probabilities(np.array([np.nan]), np.array(["new"]))
    assert probability == pytest.approx(hallucinated / 60)
    assert (probability >= calibration.threshold) == flagged
    assert calibration.out_of_fold.rows.tolist() == list(range(60))
    assert calibration.out_of_fold.probabilities == pytest.approx(np.full(60, hallucinated / 60))


def test_log_odds_are_finite():
    expected = [np.log(3), 0, np.log(1e6), -np.log(1e6), np.nan]
    found = [log_odds(one) for one in (0.75, 0.5, 1.0, 0.0, None)]
    assert found == pytest.approx(expected, rel=1e-5, nan_ok=True)


RESPONSE = "It is old. It is new. It is here."
PARTS = np.array([[0, 10], [11, 21], [22, 33]])


def parts(*scores):
    return PartScores(PARTS[: len(scores)], np.array(scores))


def example(*spans):
    return bridge_example(response=RESPONSE, labels=tuple(Label(*span) for span in spans))


def test_a_part_is_annotated_where_it_shares_a_character_with_a_span():
    assert parts(0, 0, 0).annotated(example((9, 11), (32, 33))).tolist() == [True, False, True]
    assert parts(0, 0, 0).annotated(bridge_example(response=RESPONSE)).tolist() == [False] * 3


def test_the_threshold_has_the_best_f1_over_all_parts_of_all_responses():
    # In falling order: 9 and 8 are annotated, 7 is not, 6 is, 5 and less are not. F1 of the first two is
    # 4/5, with the third 4/6, and of the first four 6/7.
    rows = [example((0, 5)), example((12, 25)), example()]
    assert threshold_of([parts(9, 1, 2), parts(7, 8, 6), NO_PARTS], rows) == 6
    # Without annotated parts none is marked.
    assert threshold_of([parts(1, 2), NO_PARTS], [example()] * 2) == np.inf
    assert threshold_of([NO_PARTS], [example((0, 5))]) == np.inf
    with pytest.raises(ValueError, match="shorter"):
        threshold_of([NO_PARTS], [])


def test_the_likeliest_shift_under_the_prior() -> None:
    generators = np.array(["a", "b"]).repeat(200)
    labels = np.concatenate([np.arange(200) < 160, np.arange(200) < 100])
    shifts = generator_shifts(np.zeros(400), labels, generators)
    assert shifts["b"] == pytest.approx(0, abs=0.01)
    by = shifts["a"]
    # Where the gradient of the loss is none.
    assert 160 - 200 * expit(by) == pytest.approx(by / 0.25, abs=0.01)


OFFSETS = [(0, 2), (2, 5), (6, 9), (10, 12)]


@pytest.mark.parametrize(
    ("spans", "scores", "expected", "marks"),
    [
        # The last one is in no part: it has the lowest score of any.
        ([(0, 3), (2, 7), (8, 9)], [0.4, 0.9, 0.2], [0.4, 0.9, 0.9, 0.2], [False, True, True, False]),
        ([(0, 2), (2, 5)], [-3, -1], [-3, -1, -3, -3], [False] * 4),
        ([], [], [0] * 4, [False] * 4),
    ],
)
def test_a_token_has_the_highest_score_of_its_parts(spans, scores, expected, marks):
    part = PartScores(np.array(spans, dtype=np.intp).reshape(-1, 2), np.array(scores, dtype=float))
    found, marked = part.over_tokens(OFFSETS, 0.5)
    assert found.tolist() == expected
    assert marked.tolist() == marks
