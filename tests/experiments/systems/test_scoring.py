"""Parts of a response and their threshold; from scores to probabilities and decisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from lrp4rag.classifiers.calibration import Sigmoid
from lrp4rag.example import Label
from lrp4rag.experiments.systems.scoring import NO_PARTS, Calibration, PartScores, ScoredSpan, threshold_of
from tests.tiny import bridge_example

ONE = np.array(["g"] * 60)


def scored(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that tell something, and labels of which a third are True."""
    generator = np.random.default_rng(seed)
    labels = np.arange(60) % 3 == 0
    return generator.normal(labels * 2.0, 1.0), labels


def test_probabilities_are_platts() -> None:
    scores, labels = scored()
    calibration = Calibration.of(scores, labels, ONE)
    expected = Sigmoid.fit(scores, labels).predict(scores)
    assert calibration.probabilities(scores, ONE) == pytest.approx(expected)
    assert calibration.out_of_fold.probabilities == pytest.approx(expected)
    assert calibration.out_of_fold.rows.tolist() == list(range(60))
    assert calibration.shifts == {}
    assert calibration.slope > 0


def test_as_many_are_flagged_as_are_hallucinated() -> None:
    scores, labels = scored()
    calibration = Calibration.of(scores, labels, ONE)
    verdicts = calibration.verdicts(scores, ONE)
    assert sum(verdict.flagged for verdict in verdicts) == labels.sum() == 20
    assert min(one.probability for one in verdicts if one.flagged) == calibration.threshold


def test_a_generator_that_makes_up_more_has_higher_odds() -> None:
    scores, _ = scored()
    generators = np.array(["a", "b"] * 30)
    labels = (np.arange(60) % 4 == 1) | (np.arange(60) % 12 == 0)  # half of b's, a sixth of a's
    calibration = Calibration.of(scores, labels, generators)
    assert calibration.shifts["a"] < 0 < calibration.shifts["b"]
    a, b, other = logit(calibration.probabilities(np.zeros(3), np.array(["a", "b", "new"])))
    assert (a - other, b - other) == pytest.approx((calibration.shifts["a"], calibration.shifts["b"]))
    assert other == pytest.approx(calibration.offset)


def test_no_answer_is_the_rate_and_teaches_no_more_than_that() -> None:
    scores, labels = scored()
    more = np.concatenate([scores, np.full(40, np.nan)])
    known = Calibration.of(scores, labels, ONE)
    calibration = Calibration.of(
        more, np.concatenate([labels, np.ones(40, dtype=bool)]), np.array(["g"] * 100)
    )
    assert (calibration.slope, calibration.offset) == (known.slope, known.offset)
    assert calibration.rate == 0.6
    verdicts = calibration.verdicts(np.array([np.nan, 0.3]), np.array(["g", "g"]))
    assert [verdict.answered for verdict in verdicts] == [False, True]
    assert verdicts[0].probability == 0.6
    assert verdicts[1].probability == pytest.approx(expit(known.slope * 0.3 + known.offset))
    assert calibration.out_of_fold.probabilities[60:].tolist() == [0.6] * 40


@pytest.mark.parametrize(("hallucinated", "flagged"), [(20, False), (40, True)])
def test_where_nothing_is_known_the_more_frequent_label_is_given(hallucinated: int, flagged: bool) -> None:
    labels = np.arange(60) < hallucinated
    calibration = Calibration.of(np.full(60, np.nan), labels, ONE)
    (verdict,) = calibration.verdicts(np.array([np.nan]), np.array(["new"]))
    assert verdict.probability == pytest.approx(hallucinated / 60)
    assert verdict.flagged is flagged
    assert not verdict.answered
    assert calibration.out_of_fold.rows.tolist() == list(range(60))
    assert calibration.out_of_fold.probabilities == pytest.approx(np.full(60, hallucinated / 60))


def test_rows_and_suspects_are_handed_on() -> None:
    scores, labels = scored()
    calibration = Calibration.of(scores, labels, ONE, rows=np.arange(60) * 2)
    assert calibration.out_of_fold.rows.tolist() == list(range(0, 120, 2))
    parts = [(ScoredSpan(0, 3, 0.5, True),), None]
    assert [one.suspects for one in calibration.verdicts(scores[:2], ONE[:2], parts)] == parts
    assert [one.suspects for one in calibration.verdicts(scores[:2], ONE[:2])] == [None, None]


RESPONSE = "It is old. It is new. It is here."
PARTS = np.array([[0, 10], [11, 21], [22, 33]])


def parts(*scores: float) -> PartScores:
    return PartScores(PARTS[: len(scores)], np.array(scores))


def test_a_part_is_annotated_where_it_shares_a_character_with_a_span() -> None:
    example = bridge_example(response=RESPONSE, labels=(Label(9, 11), Label(32, 33)))
    assert parts(0, 0, 0).annotated(example).tolist() == [True, False, True]
    assert parts(0, 0, 0).annotated(bridge_example(response=RESPONSE)).tolist() == [False] * 3


def test_the_threshold_has_the_best_f1_over_all_parts_of_all_responses() -> None:
    rows = [
        bridge_example(1, response=RESPONSE, labels=(Label(0, 5),)),
        bridge_example(2, response=RESPONSE, labels=(Label(12, 25),)),
        bridge_example(3, response=RESPONSE, labels=()),
    ]
    # In falling order: 9 and 8 are annotated, 7 is not, 6 is, 5 and less are not. F1 of the first two is
    # 4/5, with the third 4/6, and of the first four 6/7.
    scores = [parts(9, 1, 2), parts(7, 8, 6), NO_PARTS]
    assert threshold_of(scores, rows) == 6


def test_without_annotated_parts_none_is_marked() -> None:
    threshold = threshold_of([parts(1, 2), NO_PARTS], [bridge_example(response=RESPONSE, labels=())] * 2)
    assert threshold == np.inf
    assert not any(part.marked for part in parts(1, 2).marked(threshold))
    assert threshold_of([NO_PARTS], [bridge_example(response=RESPONSE, labels=(Label(0, 5),))]) == np.inf


def test_parts_are_marked_from_the_threshold_on() -> None:
    assert parts(0.4, 0.5).marked(0.5) == (ScoredSpan(0, 10, 0.4, False), ScoredSpan(11, 21, 0.5, True))
    assert NO_PARTS.marked(0.5) == ()
    with pytest.raises(ValueError, match="shorter"):
        threshold_of([NO_PARTS], [])
