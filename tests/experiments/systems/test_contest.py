"""A choice among classifiers, made and calibrated on the rows that a fold learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from lrp4rag.classifiers.calibration import Contender
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import Facts
from lrp4rag.experiments.systems.contest import NOTHING, Contest, Make, Suspicions
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.suspicion import Suspicion
from lrp4rag.training.rows import Rows
from lrp4rag.training.tabular import Contenders, logistic
from tests.training.labelled import examples, extraction

FACTS = Facts("Test", "", "text", "labels", "none")
KIT = Kit()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    made = examples(50)
    return Rows(extraction(made, tmp_path_factory.mktemp("contest") / "s").store, tuple(made))


def number_of(rows: Rows) -> np.ndarray:
    """The bridge's, (rows,): odd ones are hallucinated."""
    return np.array([int(example.id.split("-")[1]) for example in rows.examples])


def clue(rows: Rows, unanswered: Sequence[int] = ()) -> np.ndarray:
    """(rows, 1), higher where a response is hallucinated, NaN where there is no answer."""
    numbers = number_of(rows)
    found = numbers % 2 + np.sin(numbers) / 3
    return np.where(np.isin(numbers, unanswered), np.nan, found)[:, None]


def noise(rows: Rows) -> np.ndarray:
    return np.random.default_rng(0).normal(size=50)[number_of(rows)][:, None]


def knowing(unanswered: Sequence[int] = ()) -> Make:
    return lambda rows, _: (*logistic(noise(rows), "noise"), *logistic(clue(rows, unanswered), "clue"))


def contest(make: Make, suspicions: Suspicions | None = None) -> Contest:
    return Contest(FACTS, make, suspicions)


def test_the_contender_that_knows_is_chosen(rows: Rows) -> None:
    scorer = contest(knowing()).fit(rows.select(range(40)), KIT)
    assert scorer.chosen == "clue, logistic, C=1"
    own = rows.select(range(40, 50))
    scores = scorer.score(own, KIT)
    assert [score.flagged for score in scores] == own.labels.tolist()
    assert all(score.answered and score.suspects is None for score in scores)
    # Labels of what is judged are not looked at.
    hidden = Rows(rows.store, tuple(replace(one, labels=()) for one in own.examples))
    assert scorer.score(hidden, KIT) == scores


def test_what_it_is_calibrated_on_was_not_learned_from(rows: Rows) -> None:
    def by_heart(rows: Rows, _: Kit) -> Contenders:
        return (Contender("noise", "neighbour", "", KNeighborsClassifier(1), noise(rows)),)

    scorer = contest(by_heart).fit(rows, KIT)
    outside = scorer.outside
    assert outside.rows.tolist() == list(range(50))
    judged = (outside.probabilities > 0.5) == rows.labels
    assert judged.mean() < 0.8  # of rows learned from, the nearest neighbour is the row itself
    assert (scorer.model.predict(noise(rows)) == rows.labels).all()


def test_a_response_without_an_answer_gets_the_rate_of_hallucinations(rows: Rows) -> None:
    scorer = contest(knowing(unanswered=(1, 3, 5, 7, 8, 40))).fit(rows.select(range(40)), KIT)
    assert scorer.chosen == "clue, logistic, C=1"
    assert scorer.outside.probabilities[[1, 3, 5, 7, 8]].tolist() == [0.5] * 5
    unknown, known = scorer.score(rows.select([40, 41]), KIT)
    assert (unknown.probability, unknown.answered) == (0.5, False)
    assert known.answered
    assert known.probability > 0.5
    # All rows judged may be without an answer.
    assert [one.answered for one in scorer.score(rows.select([40]), KIT)] == [False]


@pytest.mark.parametrize("answered", [0, 6], ids=["none", "too few"])
def test_where_too_few_responses_are_answered_none_is(rows: Rows, answered: int) -> None:
    scorer = contest(knowing(unanswered=range(answered, 50))).fit(rows.select(range(45)), KIT)
    assert scorer.chosen == NOTHING
    rate = 22 / 45
    for score in scorer.score(rows.select([0, 46, 47]), KIT):
        assert score.probability == pytest.approx(rate)
        assert not score.answered
        assert not score.flagged
    assert scorer.outside.probabilities == pytest.approx(np.full(45, rate))


def test_too_few_sources_are_refused(rows: Rows) -> None:
    with pytest.raises(InputError, match="5 folds need at least 5 sources"):
        contest(knowing()).fit(rows.select(range(8)), KIT)


def test_a_classifier_that_calibrates_itself_cannot_take_part(rows: Rows) -> None:
    class Sure(KNeighborsClassifier):
        gives_probabilities = True

    with pytest.raises(ValueError, match="a contest needs scores"):
        contest(lambda rows, _: (Contender("x", "sure", "", Sure(), noise(rows)),)).fit(rows, KIT)


def test_parts_are_marked_from_the_threshold_that_the_rows_teach(rows: Rows) -> None:
    """The first word is what is annotated; its score is 3 there and 2 elsewhere, the rest's is 1."""

    def suspicions(rows: Rows, _: Kit) -> list[Suspicion]:
        return [
            Suspicion(np.array([[0, 7], [8, 20]]), np.array([2.0 + number % 2, 1.0]))
            for number in number_of(rows)
        ]

    scorer = contest(knowing(), suspicions).fit(rows.select(range(40)), KIT)
    assert scorer.threshold == 3.0
    even, odd = scorer.score(rows.select([40, 41]), KIT)
    assert [part.marked for part in even.suspects] == [False, False]
    assert [(part.start, part.end, part.score, part.marked) for part in odd.suspects] == [
        (0, 7, 3.0, True),
        (8, 20, 1.0, False),
    ]


def test_folds_are_drawn_with_the_seed_of_the_kit(rows: Rows, tmp_path: Path) -> None:
    found = [
        contest(knowing()).fit(rows, kit).outside.probabilities.tolist()
        for kit in (KIT, Kit(tmp_path), Kit(seed=1))
    ]
    assert found[0] == found[1] != found[2]
