"""A baseline in a fold, and the folds together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from lrp4rag.experiments.systems.baseline import Facts, Outside, Score, Suspect
from lrp4rag.experiments.systems.comparison.folds import FoldScores, gathered, over_tokens, run_fold
from lrp4rag.experiments.systems.kit import Kit
from lrp4rag.experiments.systems.words import LENGTH
from lrp4rag.training.folds import Split
from lrp4rag.training.records import from_json, to_json
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import tokens_of
from tests.training.labelled import examples, extraction

FACTS = Facts("Spy", "", "text", "labels", "none")
OFFSETS = [(0, 2), (2, 5), (6, 9), (10, 12)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    made = [
        replace(one, response=f"{one.response} still. And {'so ' * (k % 3)}on.")
        for k, one in enumerate(examples(24))
    ]
    return Rows(extraction(made, tmp_path_factory.mktemp("folds") / "s").store, tuple(made))


# Parts and tokens.


def suspect(start: int, end: int, score: float, marked: bool = False) -> Suspect:
    return Suspect(start, end, score, marked)


def test_a_token_has_the_highest_score_of_the_parts_it_shares_a_character_with() -> None:
    parts = (suspect(0, 3, 0.4), suspect(2, 7, 0.9, True), suspect(8, 9, 0.2))
    suspicion, marked = over_tokens(Score(0.5, True, parts), OFFSETS)
    # The last one is in no part: as little suspect as the least of them.
    assert suspicion.tolist() == [0.4, 0.9, 0.9, 0.2]
    assert marked.tolist() == [False, True, True, False]


def test_a_mark_stays_beside_a_part_that_is_more_suspect_but_not_marked() -> None:
    parts = (suspect(0, 2, 0.3, True), suspect(0, 2, 0.4))
    suspicion, marked = over_tokens(Score(0.5, True, parts), OFFSETS[:2])
    assert suspicion.tolist() == [0.4, 0.3]
    assert marked.tolist() == [True, False]


def test_scores_below_zero_are_kept() -> None:
    suspicion, _ = over_tokens(Score(0.5, True, (suspect(0, 2, -3.0), suspect(2, 5, -1.0))), OFFSETS)
    assert suspicion.tolist() == [-3, -1, -3, -3]


def test_without_parts_nothing_is_suspect_and_without_scores_nothing_is_known() -> None:
    suspicion, marked = over_tokens(Score(0.5, True, ()), OFFSETS)
    assert suspicion.tolist() == [0, 0, 0, 0]
    assert not marked.any()
    assert over_tokens(Score(0.5, True), OFFSETS) is None


# One fold.


@dataclass
class Spy:
    """Keeps what it is given; a response's probability is its number, its first word is marked."""

    marks: bool = True
    chosen: str = "spy"
    facts: Facts = FACTS
    learned: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)

    @property
    def outside(self) -> Outside:
        return Outside(np.array([0, 2]), np.array([0.25, 0.75]))

    def fit(self, rows: Rows, kit: Kit) -> Spy:
        assert all(example.labels is not None for example in rows.examples)
        self.learned = [example.id for example in rows.examples]
        return self

    def score(self, rows: Rows, kit: Kit) -> list[Score]:
        self.judged = [example.id for example in rows.examples]
        parts = (suspect(0, 3, 0.8, True), suspect(9, 12, 0.6)) if self.marks else None
        numbers = (int(example.id.split("-")[1]) for example in rows.examples)
        return [Score(k / 100, k % 2 == 0, parts, answered=k != 6) for k in numbers]


SPLIT = Split(0, np.array([1, 5, 9, 10, 20]), np.array([0, 6, 7]))


def test_only_training_rows_are_learned_from(rows: Rows) -> None:
    spy = Spy()
    found = run_fold(spy, rows, SPLIT, Kit())
    assert spy.learned == [f"bridge-{k}" for k in SPLIT.train]
    assert spy.judged == ["bridge-0", "bridge-6", "bridge-7"]
    assert found.rows.tolist() == [0, 6, 7]
    assert found.probabilities.tolist() == [0, 0.06, 0.07]
    assert found.flagged.tolist() == [True, True, False]
    assert found.answered.tolist() == [True, False, True]
    # The scorer numbers the rows it learned from; the fold numbers all.
    assert found.outside_rows.tolist() == [1, 9]
    assert found.outside.tolist() == [0.25, 0.75]
    assert found.chosen == "spy"


def test_parts_are_spread_over_the_tokens_of_all_responses(rows: Rows) -> None:
    found = run_fold(Spy(), rows, SPLIT, Kit())
    lengths = [len(rows.examples[k].response.split()) for k in SPLIT.test]
    assert len(found.suspicion) == len(found.marked) == sum(lengths)
    first = np.cumsum([0, *lengths[:-1]])
    assert np.flatnonzero(found.marked).tolist() == first.tolist()
    assert found.suspicion[first].tolist() == [0.8] * 3
    assert set(found.suspicion) == {0.8, 0.6}
    bare = run_fold(Spy(marks=False), rows, SPLIT, Kit())
    assert len(bare.suspicion) == len(bare.marked) == 0


def test_a_fold_survives_being_written(rows: Rows) -> None:
    found = run_fold(Spy(), rows, SPLIT, Kit())
    again = from_json(FoldScores, to_json(found))
    for name in ("rows", "probabilities", "flagged", "answered", "suspicion", "marked", "outside_rows"):
        one, other = getattr(found, name), getattr(again, name)
        assert np.array_equal(one, other), name
        assert one.dtype == other.dtype, name


# All folds.


def split(test: list[int]) -> Split:
    return Split(0, np.setdiff1d(np.arange(24), test), np.array(test))


def test_folds_are_put_together_row_by_row(rows: Rows) -> None:
    tokens = tokens_of(rows, {})
    splits = [split([*range(0, 24, 2)]), split([*range(1, 24, 2)])]
    judged = gathered([run_fold(Spy(), rows, one, Kit()) for one in splits], tokens)
    assert judged.outcome.probabilities == pytest.approx(np.arange(24)[None] / 100)
    assert judged.outcome.flagged.tolist() == [[True, False] * 12]
    assert judged.outcome.chosen == ("spy", "spy")
    assert np.flatnonzero(~judged.answered).tolist() == [6]
    first = np.searchsorted(tokens.owner, np.arange(24))
    assert np.flatnonzero(judged.marking.marked).tolist() == first.tolist()
    # The first sentence of each response has the marked token, its second has none.
    expected = tokens.sentence == tokens.sentence[first][tokens.owner]
    assert judged.marking.sentences.tolist() == expected.tolist()
    assert not judged.marking.sentences.all()
    for (test, train, outside), one in zip(judged.outside, splits, strict=True):
        assert test.tolist() == one.test.tolist()
        assert train.tolist() == one.train[[0, 2]].tolist()
        assert outside.tolist() == [0.25, 0.75]


def test_rows_that_no_fold_judged_are_not_known(rows: Rows) -> None:
    tokens = tokens_of(rows, {})
    part = [2, 3, 11, 20]
    judged = gathered(
        [run_fold(Spy(), rows, split(part[:2]), Kit()), run_fold(Spy(), rows, split(part[2:]), Kit())], tokens
    )
    known = np.isin(np.arange(24), part)
    assert np.isfinite(judged.outcome.probabilities[0]).tolist() == known.tolist()
    assert not judged.outcome.flagged[0, ~known].any()
    assert judged.answered.tolist() == known.tolist()
    own = known[tokens.owner]
    assert np.isfinite(judged.marking.scores).tolist() == own.tolist()
    assert tokens.owner[judged.marking.marked].tolist() == part
    assert not judged.marking.sentences[~own].any()
    assert judged.marks(tokens.within(np.array(part)))
    assert not judged.marks(tokens.within(np.array([2, 4])))


def test_a_baseline_that_scores_no_parts_marks_nothing(rows: Rows) -> None:
    tokens = tokens_of(rows, {})
    judged = gathered([run_fold(Spy(marks=False), rows, split([0, 1]), Kit())], tokens)
    assert judged.marking is None
    assert not judged.marks(tokens.within(np.array([0, 1])))


def test_a_fold_without_rows_to_judge_judges_nothing(rows: Rows) -> None:
    """As of a small sample."""
    every = np.arange(len(rows))
    fold = run_fold(LENGTH, rows, Split(0, every, every[:0]), Kit())
    assert len(fold.rows) == len(fold.probabilities) == len(fold.suspicion) == 0
    assert len(fold.outside) == len(rows)
    assert not gathered([fold], tokens_of(rows, {})).answered.any()
