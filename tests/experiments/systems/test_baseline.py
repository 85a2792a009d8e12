"""The best of some classifiers, on numbers that are known or measured of each response."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from experiments.systems.baseline import (
    NOTHING,
    BestClassifier,
    Facts,
    Measured,
    Measurement,
    TrainedModel,
)
from experiments.systems.resources import Resources
from experiments.systems.scoring import PartScores
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.training.controls import logistic
from lrp4rag.util.errors import InputError
from tests.experiments.systems.stand_ins import couples, extracted, judged, rows_of
from tests.training.labelled import examples

FACTS = Facts("Test", "", "text", "labels", "none")
RESOURCES = Resources()
NAMES = ("useless", "half", "other half")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return extracted(examples(60), tmp_path_factory.mktemp("rows") / "s")


def number_of(rows):
    """The bridge's, (rows,): odd ones are hallucinated."""
    return np.array([int(example.id.split("-")[1]) for example in rows.examples])


def noise(rows):
    return np.random.default_rng(0).normal(size=60)[number_of(rows)][:, None]


def knowing(unanswered=()):
    """One of two candidates has a number that is higher for hallucinated responses, NaN for no answer."""

    def candidates_of(rows, _):
        numbers = number_of(rows)
        clue = np.where(np.isin(numbers, unanswered), np.nan, numbers % 2 + np.sin(numbers) / 3)[:, None]
        return (*logistic(noise(rows), "noise"), *logistic(clue, "clue"))

    return BestClassifier(FACTS, candidates_of)


def test_it_is_calibrated_on_out_of_fold_scores(rows):
    neighbour = Candidate("noise", "neighbour", "", KNeighborsClassifier(1), noise(rows))
    fitted = BestClassifier(FACTS, lambda *_: (neighbour,)).fit(rows, RESOURCES)
    assert fitted.calibration.out_of_fold.rows.tolist() == list(range(60))
    right = (fitted.calibration.out_of_fold.probabilities > 0.5) == rows.labels
    assert right.mean() < 0.8  # of rows learned from, the nearest neighbour is the row itself


def test_a_response_without_an_answer_gets_the_rate_of_hallucinations(rows):
    fitted = knowing(unanswered=(1, 3, 5, 7, 8, 40)).fit(rows.select(range(40)), RESOURCES)
    assert fitted.chosen == "clue, logistic, C=1"
    assert fitted.calibration.out_of_fold.probabilities[[1, 3, 5, 7, 8]].tolist() == [0.5] * 5
    unknown, known = judged(fitted, rows.select([40, 41]), RESOURCES)
    assert (unknown.probability, unknown.answered) == (0.5, False)
    assert known.answered
    assert known.probability > 0.5
    # All rows judged may be without an answer.
    assert [one.answered for one in judged(fitted, rows.select([40]), RESOURCES)] == [False]


@pytest.mark.parametrize("answered", [0, 6], ids=["none", "too few"])
def test_where_too_few_responses_are_answered_none_is(rows, answered):
    fitted = knowing(unanswered=range(answered, 60)).fit(rows.select(range(45)), RESOURCES)
    assert fitted.chosen == NOTHING
    for score in judged(fitted, rows.select([0, 46, 47]), RESOURCES):
        assert score.probability == pytest.approx(22 / 45)
        assert (score.answered, score.flagged) == (False, False)
    assert fitted.calibration.out_of_fold.probabilities == pytest.approx(np.full(45, 22 / 45))


def test_a_classifier_that_calibrates_itself_is_refused(rows):
    class Sure(KNeighborsClassifier):
        gives_probabilities = True

    baseline = BestClassifier(FACTS, lambda rows, _: (Candidate("x", "sure", "", Sure(), noise(rows)),))
    with pytest.raises(ValueError, match="calibrates itself: its scores are needed"):
        baseline.fit(rows, RESOURCES)


def test_folds_are_drawn_with_the_seed_of_the_resources(rows):
    given = (RESOURCES, Resources(), Resources(seed=1))
    found = [knowing().fit(rows, one).calibration.out_of_fold.probabilities.tolist() for one in given]
    assert found[0] == found[1] != found[2]


def measure(rows, _):
    """The sum of the second and third number tells the label, and the second alone does less. Bridge 3 and
    bridge 50 have no answer. The first word, which is annotated, has the higher score."""
    found = []
    for k in number_of(rows):
        if k in (3, 50):
            found.append(Measurement(np.full(3, np.nan), asked=5, unanswered=5))
            continue
        part = np.sin(k * 1.7)
        parts = PartScores(np.array([[0, 7], [8, 20]]), np.array([2.0 + k % 2, 1.0]))
        numbers = np.array([np.cos(k * 5.0), k % 2 + part, -part])
        found.append(Measurement(numbers, parts, asked=5, unanswered=int(k % 3)))
    return found


def test_numbers_are_read_together_or_as_alternatives(rows):
    train, own = rows.select(range(40)), rows.select([*range(40, 50), *range(51, 60)])
    fitted = Measured(FACTS, measure, NAMES).fit(train, RESOURCES)
    assert fitted.chosen == "useless and half and other half, logistic, C=1"
    scores = judged(fitted, own, RESOURCES)
    assert [score.flagged for score in scores] == own.labels.tolist()
    asked = [(one.asked, one.unanswered) for one in scores[:2]]
    assert asked == [(5, 1), (5, 2)]
    assert all(one.parts is None for one in scores)  # without marks there are no parts
    apart = Measured(FACTS, measure, NAMES, alternatives=True).fit(train, RESOURCES)
    assert apart.chosen == "half, logistic, C=1"


@pytest.mark.parametrize(
    ("mark_from", "threshold", "first"), [(None, 3.0, [False, True]), (1.5, 1.5, [True, True])]
)
def test_parts_are_marked_from_the_best_threshold_unless_one_is_given(rows, mark_from, threshold, first):
    baseline = Measured(FACTS, measure, NAMES, marks=True, mark_from=mark_from)
    fitted = baseline.fit(rows.select(range(40)), RESOURCES)
    assert fitted.threshold == threshold
    even, odd, silent, last = judged(fitted, rows.select([48, 49, 50, 51]), RESOURCES)
    assert [one.parts[0][3] for one in (even, odd)] == first
    assert [part[:3] for part in odd.parts] == [(0, 7, 3.0), (8, 20, 1.0)]
    # A response without an answer has no parts, and those after it keep theirs.
    assert (silent.parts, silent.answered, silent.unanswered) == ([], False, 5)
    assert last.parts[0][3]


def test_rows_that_a_model_has_seen_are_not_measured(rows):
    """Its numbers would be too good there."""
    measured = []

    def by_model(rows, resources, model):
        measured.extend(number_of(rows))
        assert model == "the fold's model"
        return measure(rows, resources)

    def model_of(rows, _):
        return TrainedModel("the fold's model", np.arange(len(rows)) >= 10)

    fitted = Measured(FACTS, by_model, NAMES, model_of=model_of).fit(rows.select(range(40)), RESOURCES)
    assert set(measured) == set(range(10, 40))
    assert fitted.calibration.out_of_fold.rows.tolist() == list(range(10, 40))
    own = rows.select(range(40, 50))
    assert [score.flagged for score in judged(fitted, own, RESOURCES)] == own.labels.tolist()


@pytest.mark.parametrize(
    ("unseen", "words"), [(1.0, "^5 folds need"), (0.5, "^of 4 sources .* all but 2; these")]
)
def test_few_sources_are_blamed_on_training_only_where_there_was_any(unseen, words):
    rows = rows_of(couples(4))
    own = np.isin(rows.groups, np.unique(rows.groups)[: round(4 * unseen)])
    lengths = [Measurement(np.array([float(len(one.response))])) for one in rows.examples]
    baseline = Measured(FACTS, lambda *_: lengths, ("length",), model_of=lambda *_: TrainedModel("m", own))
    with pytest.raises(InputError, match=words):
        baseline.fit(rows, Resources())
