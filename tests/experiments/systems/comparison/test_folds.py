"""A baseline in a fold, the folds together, the sample, and combinations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments.systems.comparison.compare import stacked
from experiments.systems.comparison.folds import (
    GENERATORS,
    gathered,
    over_tokens,
    run_fold,
    sample_of,
)
from experiments.systems.comparison.scores import SystemScores
from experiments.systems.resources import Resources
from experiments.systems.scoring import OutOfFold, Score, ScoredSpan
from experiments.systems.simple import LENGTH
from lrp4rag.training.folds import Split
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import Outcome
from tests.experiments.systems.stand_ins import extracted, rows_of
from tests.training.labelled import examples

OFFSETS = [(0, 2), (2, 5), (6, 9), (10, 12)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    said = [f" still. And {'so ' * (k % 3)}on." for k in range(24)]
    made = [replace(one, response=one.response + more) for one, more in zip(examples(24), said, strict=True)]
    return extracted(made, tmp_path_factory.mktemp("folds") / "s")


@pytest.fixture(scope="module")
def tokens(rows):
    return tokens_of(rows, {})


def suspect(start, end, score, marked=False):
    return ScoredSpan(start, end, score, marked)


@pytest.mark.parametrize(
    ("parts", "scores", "marks"),
    [
        # The last one is in no part: it has the lowest score of any.
        (
            (suspect(0, 3, 0.4), suspect(2, 7, 0.9, True), suspect(8, 9, 0.2)),
            [0.4, 0.9, 0.9, 0.2],
            [False, True, True, False],
        ),
        # A mark stays beside a part whose score is higher but not marked.
        ((suspect(0, 2, 0.3, True), suspect(0, 2, 0.4)), [0.4, 0.3, 0.3, 0.3], [True, False, False, False]),
        ((suspect(0, 2, -3.0), suspect(2, 5, -1.0)), [-3, -1, -3, -3], [False] * 4),
        ((), [0] * 4, [False] * 4),
    ],
)
def test_a_token_has_the_highest_score_of_the_parts_it_shares_a_character_with(parts, scores, marks):
    found, marked = over_tokens(Score(0.5, True, parts), OFFSETS)
    assert found.tolist() == scores
    assert marked.tolist() == marks


class Spy:
    """Keeps what it is given; a response's probability is its number, its first word is marked."""

    chosen = "spy"
    out_of_fold = OutOfFold(np.array([0, 2]), np.array([0.25, 0.75]))

    def fit(self, rows, _):
        self.learned = [example.id for example in rows.examples]
        return self

    def score(self, rows, _):
        self.judged = [example.id for example in rows.examples]
        parts = (suspect(0, 3, 0.8, True), suspect(9, 12, 0.6))
        numbers = (int(example.id.split("-")[1]) for example in rows.examples)
        return [Score(k / 100, k % 2 == 0, parts, answered=k != 6) for k in numbers]


SPLIT = Split(0, np.array([1, 5, 9, 10, 20]), np.array([0, 6, 7]))


def test_only_training_rows_are_learned_from(rows):
    spy = Spy()
    found = run_fold(spy, rows, SPLIT, Resources())
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


def test_parts_are_spread_over_the_tokens_of_all_responses(rows):
    found = run_fold(Spy(), rows, SPLIT, Resources())
    lengths = [len(rows.examples[k].response.split()) for k in SPLIT.test]
    assert len(found.suspicion) == len(found.marked) == sum(lengths)
    first = np.cumsum([0, *lengths[:-1]])
    assert np.flatnonzero(found.marked).tolist() == first.tolist()
    assert found.suspicion[first].tolist() == [0.8] * 3
    assert set(found.suspicion) == {0.8, 0.6}


def folds_of(rows, *tests):
    """Folds that judge these rows, and learn from the others."""
    splits = [Split(0, np.setdiff1d(np.arange(24), test), np.array(test)) for test in tests]
    return [run_fold(Spy(), rows, split, Resources()) for split in splits]


def test_folds_are_put_together_row_by_row(rows, tokens):
    halves = [[*range(0, 24, 2)], [*range(1, 24, 2)]]
    judged = gathered(folds_of(rows, *halves), tokens)
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
    for (test, train, outside), own, others in zip(judged.outside, halves, halves[::-1], strict=True):
        assert test.tolist() == own
        assert train.tolist() == [others[0], others[2]]
        assert outside.tolist() == [0.25, 0.75]


def test_rows_that_no_fold_judged_are_not_known(rows, tokens):
    part = [2, 3, 11, 20]
    judged = gathered(folds_of(rows, part[:2], part[2:]), tokens)
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


def test_a_fold_without_rows_to_judge_judges_nothing(rows, tokens):
    """As of a small sample."""
    every = np.arange(len(rows))
    fold = run_fold(LENGTH, rows, Split(0, every, every[:0]), Resources())
    assert len(fold.rows) == len(fold.probabilities) == len(fold.suspicion) == 0
    assert len(fold.outside) == len(rows)
    assert not gathered([fold], tokens).answered.any()


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
