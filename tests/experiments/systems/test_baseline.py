"""The best of some classifiers, on numbers that are known or measured of each response."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import (
    NOTHING,
    BestClassifier,
    Measured,
    Measurement,
    TrainedModel,
)
from lrp4rag.experiments.systems.facts import Facts
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.experiments.systems.scoring import PartScores
from lrp4rag.training.candidates import Candidates, logistic
from lrp4rag.training.rows import Rows
from tests.experiments.systems.stand_ins import couples, rows_of
from tests.training.labelled import examples, extraction

FACTS = Facts("Test", "", "text", "labels", "none")
RESOURCES = Resources()
NAMES = ("useless", "half", "other half")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    made = examples(60)
    return Rows(extraction(made, tmp_path_factory.mktemp("rows") / "s").store, tuple(made))


def number_of(rows: Rows) -> np.ndarray:
    """The bridge's, (rows,): odd ones are hallucinated."""
    return np.array([int(example.id.split("-")[1]) for example in rows.examples])


def noise(rows: Rows) -> np.ndarray:
    return np.random.default_rng(0).normal(size=60)[number_of(rows)][:, None]


def knowing(unanswered: Sequence[int] = ()) -> BestClassifier:
    """One of two candidates has a number that is higher for hallucinated responses, NaN for no answer."""

    def candidates_of(rows: Rows, _: Resources) -> Candidates:
        numbers = number_of(rows)
        clue = np.where(np.isin(numbers, unanswered), np.nan, numbers % 2 + np.sin(numbers) / 3)[:, None]
        return (*logistic(noise(rows), "noise"), *logistic(clue, "clue"))

    return BestClassifier(FACTS, candidates_of)


# The best of some classifiers.


def test_the_candidate_that_knows_is_chosen(rows: Rows) -> None:
    fitted = knowing().fit(rows.select(range(40)), RESOURCES)
    assert fitted.chosen == "clue, logistic, C=1"
    own = rows.select(range(40, 50))
    scores = fitted.score(own, RESOURCES)
    assert [score.flagged for score in scores] == own.labels.tolist()
    assert all(score.answered and score.suspects is None for score in scores)


def test_it_is_calibrated_on_out_of_fold_scores(rows: Rows) -> None:
    def by_heart(rows: Rows, _: Resources) -> Candidates:
        return (Candidate("noise", "neighbour", "", KNeighborsClassifier(1), noise(rows)),)

    fitted = BestClassifier(FACTS, by_heart).fit(rows, RESOURCES)
    assert fitted.out_of_fold.rows.tolist() == list(range(60))
    right = (fitted.out_of_fold.probabilities > 0.5) == rows.labels
    assert right.mean() < 0.8  # of rows learned from, the nearest neighbour is the row itself
    assert (fitted.model.predict(noise(rows)) == rows.labels).all()


def test_a_response_without_an_answer_gets_the_rate_of_hallucinations(rows: Rows) -> None:
    fitted = knowing(unanswered=(1, 3, 5, 7, 8, 40)).fit(rows.select(range(40)), RESOURCES)
    assert fitted.chosen == "clue, logistic, C=1"
    assert fitted.out_of_fold.probabilities[[1, 3, 5, 7, 8]].tolist() == [0.5] * 5
    unknown, known = fitted.score(rows.select([40, 41]), RESOURCES)
    assert (unknown.probability, unknown.answered) == (0.5, False)
    assert known.answered
    assert known.probability > 0.5
    # All rows judged may be without an answer.
    assert [one.answered for one in fitted.score(rows.select([40]), RESOURCES)] == [False]


@pytest.mark.parametrize("answered", [0, 6], ids=["none", "too few"])
def test_where_too_few_responses_are_answered_none_is(rows: Rows, answered: int) -> None:
    fitted = knowing(unanswered=range(answered, 60)).fit(rows.select(range(45)), RESOURCES)
    assert fitted.chosen == NOTHING
    for score in fitted.score(rows.select([0, 46, 47]), RESOURCES):
        assert score.probability == pytest.approx(22 / 45)
        assert not score.answered
        assert not score.flagged
    assert fitted.out_of_fold.probabilities == pytest.approx(np.full(45, 22 / 45))


def test_a_classifier_that_calibrates_itself_is_refused(rows: Rows) -> None:
    class Sure(KNeighborsClassifier):
        gives_probabilities = True

    baseline = BestClassifier(FACTS, lambda rows, _: (Candidate("x", "sure", "", Sure(), noise(rows)),))
    with pytest.raises(ValueError, match="calibrates itself: its scores are needed"):
        baseline.fit(rows, RESOURCES)


def test_folds_are_drawn_with_the_seed_of_the_resources(rows: Rows, tmp_path: Path) -> None:
    found = [
        knowing().fit(rows, resources).out_of_fold.probabilities.tolist()
        for resources in (RESOURCES, Resources(tmp_path), Resources(seed=1))
    ]
    assert found[0] == found[1] != found[2]


# Measurements.


def measure(rows: Rows, _: Resources) -> list[Measurement]:
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
        found.append(Measurement(numbers, parts, asked=5, unanswered=int(k % 3), notes=(f"on {k}",)))
    return found


def test_numbers_are_read_together_or_as_alternatives(rows: Rows) -> None:
    train, own = rows.select(range(40)), rows.select([*range(40, 50), *range(51, 60)])
    fitted = Measured(FACTS, measure, NAMES).fit(train, RESOURCES)
    assert fitted.chosen == "useless and half and other half, logistic, C=1"
    scores = fitted.score(own, RESOURCES)
    assert [score.flagged for score in scores] == own.labels.tolist()
    assert [(one.asked, one.unanswered, one.notes) for one in scores[:2]] == [
        (5, 1, ("on 40",)),
        (5, 2, ("on 41",)),
    ]
    assert Measured(FACTS, measure, NAMES, alternatives=True).fit(train, RESOURCES).chosen == (
        "half, logistic, C=1"
    )


@pytest.mark.parametrize(
    ("mark_from", "threshold", "first"), [(None, 3.0, [False, True]), (1.5, 1.5, [True, True])]
)
def test_parts_are_marked_from_the_best_threshold_unless_one_is_given(
    rows: Rows, mark_from: float | None, threshold: float, first: list[bool]
) -> None:
    baseline = Measured(FACTS, measure, NAMES, marks=True, mark_from=mark_from)
    fitted = baseline.fit(rows.select(range(40)), RESOURCES)
    assert fitted.threshold == threshold
    even, odd, silent, last = fitted.score(rows.select([48, 49, 50, 51]), RESOURCES)
    assert [one.suspects[0].marked for one in (even, odd)] == first
    assert [(part.start, part.end, part.score) for part in odd.suspects] == [(0, 7, 3.0), (8, 20, 1.0)]
    # A response without an answer has no parts, and those after it keep theirs.
    assert (silent.suspects, silent.answered, silent.unanswered) == ((), False, 5)
    assert last.suspects[0].marked


def test_only_a_baseline_that_marks_has_parts(rows: Rows) -> None:
    fitted = Measured(FACTS, measure, NAMES).fit(rows.select(range(40)), RESOURCES)
    assert all(one.suspects is None for one in fitted.score(rows.select([48, 49]), RESOURCES))


def test_rows_that_a_model_has_seen_are_not_measured(rows: Rows) -> None:
    """Its numbers would be too good there."""
    measured: list[int] = []

    def by_model(rows: Rows, resources: Resources, model: str) -> list[Measurement]:
        assert model == "the fold's model"
        measured.extend(number_of(rows))
        return measure(rows, resources)

    def model_of(rows: Rows, _: Any) -> TrainedModel[str]:
        return TrainedModel("the fold's model", np.arange(len(rows)) >= 10)

    fitted = Measured(FACTS, by_model, NAMES, model_of=model_of).fit(rows.select(range(40)), RESOURCES)
    assert set(measured) == set(range(10, 40))
    assert fitted.out_of_fold.rows.tolist() == list(range(10, 40))
    own = rows.select(range(40, 50))
    assert [score.flagged for score in fitted.score(own, RESOURCES)] == own.labels.tolist()


@pytest.mark.parametrize(
    ("unseen", "words"), [(1.0, "^5 folds need"), (0.5, "^of 4 sources .* all but 2; these")]
)
def test_few_sources_are_blamed_on_training_only_where_there_was_any(unseen: float, words: str) -> None:
    rows = rows_of(couples(4))
    own = np.isin(rows.groups, np.unique(rows.groups)[: round(4 * unseen)])

    def lengths(rows: Rows, *_: Any) -> list[Measurement]:
        return [Measurement(np.array([float(len(one.response))])) for one in rows.examples]

    baseline = Measured(FACTS, lengths, ("length",), model_of=lambda *_: TrainedModel("model", own))
    with pytest.raises(InputError, match=words):
        baseline.fit(rows, Resources())
