"""A baseline in a fold, the folds together, the sample, and combinations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments.systems.baseline import Fitted, Reading
from experiments.systems.comparison import stacked
from experiments.systems.facts import Facts
from experiments.systems.folds import GENERATORS, FoldRunner, joined, sample_of
from experiments.systems.resources import Resources
from experiments.systems.scores import SystemScores
from experiments.systems.scoring import Calibration, OutOfFold, PartScores
from experiments.systems.simple import LENGTH
from lrp4rag.training.folds import Split
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import Outcome
from tests.experiments.systems.stand_ins import extracted, rows_of
from tests.training.labelled import examples


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    said = [f" still. And {'so ' * (k % 3)}on." for k in range(24)]
    made = [replace(one, response=one.response + more) for one, more in zip(examples(24), said, strict=True)]
    return extracted(made, tmp_path_factory.mktemp("folds") / "s")


@pytest.fixture(scope="module")
def tokens(rows):
    return tokens_of(rows, {})


class Spy:
    """Keeps what it is given; a response's score is its number, its first word is marked."""

    facts = Facts("Spy", "", "text", "", "")

    def fit(self, rows, _):
        self.learned = [example.id for example in rows.examples]
        outside = OutOfFold(np.array([0, 2]), np.array([0.25, 0.75]))
        return Fitted("spy", self.read, Calibration(1.0, 0.0, {}, 0.9, 0.5, outside), 0.7)

    def read(self, rows, _):
        self.judged = [example.id for example in rows.examples]
        part = PartScores(np.array([[0, 3], [9, 12]]), np.array([0.8, 0.6]))
        numbers = np.array([int(example.id.split("-")[1]) for example in rows.examples], dtype=float)
        return Reading(np.where(numbers == 6, np.nan, numbers), [part] * len(rows))


SPLIT = Split(0, np.array([1, 5, 9, 10, 20]), np.array([0, 6, 7]))


def run(rows, tokens, split, baseline):
    return FoldRunner(rows, tokens, np.arange(len(rows)), Resources()).train_and_judge(baseline, split)


def test_only_training_rows_are_learned_from(rows, tokens):
    spy = Spy()
    found = run(rows, tokens, SPLIT, spy)
    assert spy.learned == [f"bridge-{k}" for k in SPLIT.train]
    assert spy.judged == ["bridge-0", "bridge-6", "bridge-7"]
    assert found.rows.tolist() == [0, 6, 7]
    assert found.probabilities.tolist() == pytest.approx([0.5, 0.5, sigmoid(7)])
    assert found.flagged.tolist() == [False, False, True]
    assert found.answered.tolist() == [True, False, True]
    # The scorer numbers the rows it learned from; the fold numbers all.
    assert found.outside_rows.tolist() == [1, 9]
    assert found.outside.tolist() == [0.25, 0.75]
    assert found.chosen == "spy"
    # Parts are spread over the tokens of all responses.
    lengths = [len(rows.examples[k].response.split()) for k in SPLIT.test]
    first = np.cumsum([0, *lengths[:-1]])
    assert np.flatnonzero(found.marked).tolist() == first.tolist()
    assert len(found.suspicion) == sum(lengths)
    assert set(found.suspicion) == {0.8, 0.6}


def folds_of(rows, tokens, *tests):
    """Folds that judge these rows, and learn from the others."""
    splits = [Split(0, np.setdiff1d(np.arange(24), test), np.array(test)) for test in tests]
    return [run(rows, tokens, split, Spy()) for split in splits]


def test_folds_are_put_together_row_by_row(rows, tokens):
    halves = [[*range(0, 24, 2)], [*range(1, 24, 2)]]
    found = joined(folds_of(rows, tokens, *halves), tokens)
    expected = np.where(np.arange(24) == 6, 0.5, sigmoid(np.arange(24)))
    assert found.outcome.probabilities == pytest.approx(expected[None])
    assert found.outcome.chosen == ("spy", "spy")
    assert np.flatnonzero(~found.answered).tolist() == [6]
    first = np.searchsorted(tokens.owner, np.arange(24))
    assert np.flatnonzero(found.marking.marked).tolist() == first.tolist()
    # The first sentence of each response has the marked token, its second has none.
    marked = tokens.sentence == tokens.sentence[first][tokens.owner]
    assert found.marking.sentences.tolist() == marked.tolist()
    assert not found.marking.sentences.all()
    for (test, train, outside), own, others in zip(found.outside, halves, halves[::-1], strict=True):
        assert test.tolist() == own
        assert train.tolist() == [others[0], others[2]]
        assert outside.tolist() == [0.25, 0.75]


def test_rows_that_no_fold_judged_are_not_known(rows, tokens):
    part = [2, 3, 11, 20]
    found = joined(folds_of(rows, tokens, part[:2], part[2:]), tokens)
    known = np.isin(np.arange(24), part)
    assert np.isfinite(found.outcome.probabilities[0]).tolist() == known.tolist()
    assert not found.outcome.flagged[0, ~known].any()
    assert found.answered.tolist() == known.tolist()
    own = known[tokens.owner]
    assert np.isfinite(found.marking.scores).tolist() == own.tolist()
    assert tokens.owner[found.marking.marked].tolist() == part
    assert not found.marking.sentences[~own].any()


def test_a_fold_without_rows_to_judge_judges_nothing(rows, tokens):
    """As of a small sample."""
    every = np.arange(len(rows))
    fold = run(rows, tokens, Split(0, every, every[:0]), LENGTH)
    assert len(fold.rows) == len(fold.probabilities) == len(fold.suspicion) == 0
    assert len(fold.outside) == len(rows)
    assert not joined([fold], tokens).answered.any()


@pytest.fixture(scope="module")
def many():
    """20 sources with a response of both default generators, and ten with one of another."""
    written = [*((name, examples(20)) for name in GENERATORS), ("gpt-4", examples(10, first=20))]
    return rows_of(
        replace(one, generator=name, response=f"{name}: {one.response}", labels=())
        for name, made in written
        for one in made
    )


def test_all_responses_of_the_generators_to_the_sources_drawn(many):
    chosen = sample_of(many, sources=8)
    assert chosen.tolist() == sorted(chosen.tolist())
    assert set(many.generators[chosen]) == set(GENERATORS)
    assert len(set(many.groups[chosen])) == 8
    assert len(chosen) == 8 * len(GENERATORS)


def test_a_sample_is_drawn_once_and_fewer_sources_are_some_of_more(many):
    assert sample_of(many, sources=8).tolist() == sample_of(many, sources=8).tolist()
    assert sample_of(many, sources=8, seed=1).tolist() != sample_of(many, sources=8).tolist()
    # Whatever the order of the rows.
    shuffled = many.select(np.random.default_rng(0).permutation(len(many)))
    sources = [set(rows.groups[sample_of(rows, sources=8)]) for rows in (shuffled, many)]
    assert sources[0] == sources[1]
    samples = [set(sample_of(many, sources=count).tolist()) for count in (2, 5, 9, 20)]
    assert all(fewer < more for fewer, more in pairwise(samples))


@pytest.mark.parametrize(
    ("generators", "expected"),
    [(GENERATORS, range(40)), (["gpt-4"], range(40, 50)), (["unheard of"], range(50))],
)
def test_of_few_sources_all_are_taken_and_of_unknown_generators_all_others(many, generators, expected):
    assert sample_of(many, generators=generators).tolist() == list(expected)


COUNT = 400
LABELS = np.arange(COUNT) % 2 == 0
FOLDS = np.arange(COUNT) // 2 % 4


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def judged(signal, outside=None, rows=slice(None)):
    """Probabilities that are the same on rows learned from and judged, unless `outside` says otherwise."""
    probabilities, known = sigmoid(signal), sigmoid(signal if outside is None else outside)
    folds = []
    for fold in range(4):
        test, train = np.flatnonzero(fold == FOLDS), np.flatnonzero(fold != FOLDS)[rows]
        folds.append((test, train, known[train]))
    outcome = Outcome(probabilities[None], probabilities[None] >= 0.5)
    return SystemScores(outcome, None, np.ones(COUNT, dtype=bool), tuple(folds))


@pytest.fixture
def noise():
    """Draws that tell nothing, each time others."""
    generator = np.random.default_rng(0)
    return lambda scale=1: generator.normal(0, scale, COUNT)


def test_two_that_err_elsewhere_are_better_together(noise):
    first, second = LABELS + noise(), LABELS + noise()
    both, alone = stacked(judged(first), {"text": judged(second)}, LABELS)
    best, *apart = (roc_auc_score(LABELS, one) for one in (both.probabilities[0], first, second))
    assert best > max(apart) + 0.03
    assert set(both.chosen) == {"text"}
    assert alone.probabilities[0] == pytest.approx(sigmoid(second))
    assert np.isfinite(both.probabilities).all()
    # As many are flagged as are hallucinated, about: the rule of every system.
    assert both.flagged.mean() == pytest.approx(0.5, abs=0.05)


def test_the_best_is_chosen_by_rows_learned_from(noise):
    ours, weak, strong = noise(), noise(), LABELS + noise(0.5)
    # One looks good on the rows judged only, the other on those learned from only.
    boasting, modest = judged(strong, outside=weak), judged(weak, outside=strong)
    both, alone = stacked(judged(ours), {"boasting": boasting, "modest": modest}, LABELS)
    assert set(both.chosen) == {"modest"}
    assert alone.probabilities[0] == pytest.approx(sigmoid(weak))


def test_weights_come_from_rows_that_both_know(noise):
    ours, theirs, few = judged(LABELS + noise()), LABELS + noise(), slice(0, 60)
    wrong = np.where(np.arange(COUNT) < 80, theirs, -50.0 * (LABELS - 0.5))
    known = (judged(theirs, rows=few), judged(theirs, outside=wrong, rows=few))
    first, second = (stacked(ours, {"text": one}, LABELS)[0] for one in known)
    assert first.probabilities == pytest.approx(second.probabilities)
