"""Numbers that are measured of each response, read by logistic regression."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.experiments.systems.baseline import Facts
from lrp4rag.experiments.systems.kit import Kit, Trained
from lrp4rag.experiments.systems.measurement import Measured, Measurement
from lrp4rag.experiments.systems.suspicion import Suspicion
from lrp4rag.experiments.systems.taught import entailed
from lrp4rag.training.rows import Rows
from tests.training.labelled import examples, extraction

FACTS = Facts("Test", "", "text", "labels", "none")
NAMES = ("useless", "half", "other half")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    made = examples(60)
    return Rows(extraction(made, tmp_path_factory.mktemp("measured") / "s").store, tuple(made))


def measure(rows: Rows, kit: Kit) -> list[Measurement]:
    """The label is told by the sum of the second and third number, and less by the second alone. Bridge 3
    and bridge 50 have no answer."""
    found = []
    for example in rows.examples:
        k = int(example.id.split("-")[1])
        if k in (3, 50):
            found.append(Measurement(np.full(3, np.nan)))
            continue
        part = np.sin(k * 1.7)
        numbers = np.array([np.cos(k * 5.0), k % 2 + part, -part])
        found.append(Measurement(numbers, Suspicion(np.array([[0, 9]]), np.array([k % 2 + 0.5]))))
    return found


def test_numbers_are_read_together(rows: Rows) -> None:
    scorer = Measured(FACTS, measure, NAMES).fit(rows.select(range(40)), Kit())
    assert scorer.chosen == "useless and half and other half, logistic, C=1"
    own = rows.select([*range(40, 50), *range(51, 60)])
    assert [score.flagged for score in scorer.score(own, Kit())] == own.labels.tolist()


def test_alternatives_contend_one_by_one(rows: Rows) -> None:
    scorer = Measured(FACTS, measure, NAMES, alternatives=True).fit(rows.select(range(40)), Kit())
    assert scorer.chosen == "half, logistic, C=1"


def test_only_a_baseline_that_marks_scores_parts(rows: Rows) -> None:
    train, own = rows.select(range(40)), rows.select([48, 49, 50, 51])
    for score in Measured(FACTS, measure, NAMES).fit(train, Kit()).score(own, Kit()):
        assert score.suspects is None
    scores = Measured(FACTS, measure, NAMES, marks=True).fit(train, Kit()).score(own, Kit())
    # A response without an answer has no parts, and those after it keep theirs.
    assert [[part.marked for part in score.suspects] for score in scores] == [[False], [True], [], [True]]
    assert [score.answered for score in scores] == [True, True, False, True]


def test_what_a_model_learned_from_is_not_used_to_read_its_numbers(rows: Rows) -> None:
    """The model knows the labels of the first ten rows, and nothing of the others."""

    class Stub(Kit):
        def entailment(self, rows: Rows) -> Trained:
            return Trained("the fold's model", np.arange(len(rows)) >= 10)

    measured = []

    def using(model: str) -> Measured:
        def by_model(rows: Rows, kit: Kit) -> list[Measurement]:
            assert model == "the fold's model"
            measured.extend(example.id for example in rows.examples)
            return measure(rows, kit)

        return Measured(FACTS, by_model, NAMES)

    scorer = entailed(FACTS, using).fit(rows.select(range(40)), Stub())
    assert set(measured) == {f"bridge-{k}" for k in range(10, 40)}
    assert scorer.outside.rows.tolist() == list(range(10, 40))
    own = rows.select(range(40, 50))
    # Whatever kit it is scored with.
    assert [score.flagged for score in scorer.score(own, Kit())] == own.labels.tolist()


def test_questions_without_a_usable_reply_are_told_with_the_score(tmp_path) -> None:
    made = examples(24)
    rows = Rows(extraction(made, tmp_path / "s").store, tuple(made))

    def measure(rows: Rows, kit: object) -> list[Measurement]:
        return [
            Measurement(np.array([float(len(one.response))]), asked=5, unanswered=k % 3)
            for k, one in enumerate(rows.examples)
        ]

    scorer = Measured(FACTS, measure, ("length",)).fit(rows, Kit())
    scores = scorer.score(rows.select(range(6)), Kit())
    assert [one.asked for one in scores] == [5] * 6
    assert [one.unanswered for one in scores] == [0, 1, 2, 0, 1, 2]
