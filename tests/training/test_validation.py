"""Folds, and the candidates that are chosen, fitted and judged in them."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from experiments.paper.data import PAPER
from lrp4rag.classifiers.calibration import (
    Candidate,
    candidates_on,
    fit_best,
    grouped_folds,
    probability_of,
)
from lrp4rag.training.folds import HONEST, ONCE, splits
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import cross_validated
from lrp4rag.util.errors import InputError

# The pooled data: four generators answered each of 25 questions.
GROUPS = np.repeat([f"s{k}" for k in range(25)], 4)
GENERATORS = np.tile(["a", "b", "c", "d"], 25)
LABELS = np.random.default_rng(0).random(100) < 0.5
ALL = np.ones(100, dtype=bool)
REFUSING = replace(PAPER, leaks="refused")

# Folds.


def test_captions_of_protocols():
    assert HONEST.words == (
        "5-fold cross-validation stratified by label and grouped by source, 3 repeats from seed 0"
    )
    assert PAPER.words == (
        "5-fold cross-validation stratified by label, sources not held out, seed 0, "
        "fixed settings, no calibration"
    )


@pytest.mark.parametrize("protocol", [HONEST, PAPER], ids=lambda protocol: protocol.name)
def test_every_row_is_judged_once_a_repeat_by_all_the_others_it_may_learn_from(protocol):
    found, leaks = splits(protocol, LABELS, GROUPS, ALL, ALL)
    assert len(found) == protocol.repeats * 5
    for repeat in range(protocol.repeats):
        tested = [split.test for split in found if split.repeat == repeat]
        assert sorted(np.concatenate(tested)) == list(range(100))
    leaking = set()
    for split in found:
        assert sorted([*split.train, *split.test]) == list(range(100))
        # Stratified: each fold has about as many of each class.
        assert abs(LABELS[split.test].mean() - LABELS.mean()) < 0.15
        leaking |= {row for row in split.test if GROUPS[row] in set(GROUPS[split.train])}
    assert leaks == len(leaking)
    assert leaks == 0 if protocol.grouped else leaks > 90


def test_sources_on_both_sides_are_refused_unless_the_protocol_counts_them():
    with pytest.raises(InputError, match=r"rows would be judged by a model that learned from their source"):
        splits(REFUSING, LABELS, GROUPS, ALL, ALL)
    one, everything = GENERATORS == "a", np.ones(25, dtype=bool)
    assert splits(REFUSING, LABELS[one], GROUPS[one], everything, everything)[1] == 0
    with pytest.raises(InputError, match="25 rows would be judged"):
        splits(REFUSING, LABELS, GROUPS, one, GENERATORS == "b")
    assert splits(PAPER, LABELS, GROUPS, one, GENERATORS == "b")[1] == 25


def test_transfer_holds_out_the_sources_it_judges():
    train, test = GENERATORS != "b", GENERATORS == "b"
    found, leaks = splits(HONEST, LABELS, GROUPS, train, test)
    assert leaks == 0
    assert sorted(np.concatenate([split.test for split in found[:5]])) == list(np.flatnonzero(test))
    for split in found:
        assert set(GENERATORS[split.train]) == {"a", "c", "d"}
        assert set(GENERATORS[split.test]) == {"b"}
        assert not set(GROUPS[split.train]) & set(GROUPS[split.test])
        # Nothing else is held out.
        assert len(split.train) == 3 * (25 - len(split.test))


# Candidates in folds.


def data(sources=60, generators=2, shift=0.8, seed=0):
    """Rows of several generators that share sources; only the first column is informative."""
    rng = np.random.default_rng(seed)
    count = sources * generators
    labels = rng.random(count) < 0.5
    inputs = rng.normal(size=(count, 4))
    inputs[:, 0] += np.where(labels, shift, -shift)
    groups = np.repeat([f"s{k}" for k in range(sources)], generators)
    return inputs, labels, groups, np.tile([f"g{k}" for k in range(generators)], sources)


def candidate(estimator, inputs, name="x"):
    return Candidate(name, "c", "", estimator, inputs)


def test_the_outcome_equals_a_loop_over_folds():
    inputs, labels, groups, generators = data(sources=30)
    twice = replace(HONEST, repeats=2, folds=3)
    outcome = cross_validated(candidates_on("svm", inputs, "real"), labels, groups, twice)
    assert outcome.probabilities.shape == outcome.flagged.shape == (2, 60)
    assert outcome.leaks == 0
    chosen = []
    for repeat in range(2):
        for train, test in grouped_folds(labels, groups, 3, repeat):
            best, model = fit_best(candidates_on("svm", inputs[train]), labels[train], groups[train])
            expected = probability_of(model, inputs[test])
            assert np.allclose(outcome.probabilities[repeat, test], expected, atol=1e-12)
            chosen.append(f"real, svm, {best.settings}")
    assert outcome.chosen == tuple(chosen)
    assert np.array_equal(outcome.flagged, outcome.probabilities >= 0.5)
    part = outcome.select(generators == "g1")
    assert np.array_equal(part.probabilities, outcome.probabilities[:, 1::2])
    assert np.array_equal(part.flagged, outcome.flagged[:, 1::2])
    assert part.chosen == outcome.chosen


def test_workers_change_nothing():
    inputs, labels, groups, _ = data()
    wide = np.random.default_rng(2).normal(size=(120, 1500))  # large enough to be shared between workers
    candidates = [candidate(LogisticRegression(), each) for each in (wide, inputs)]
    with parallel_config(backend="multiprocessing"):
        one, two = (
            cross_validated(candidates, labels, groups, replace(ONCE, folds=3), n_jobs=jobs)
            for jobs in (1, 2)
        )
    assert np.array_equal(one.probabilities, two.probabilities)
    assert np.array_equal(one.flagged, two.flagged)
    assert one.chosen == two.chosen


def test_the_better_inputs_are_chosen_in_every_fold():
    inputs, labels, groups, _ = data()
    candidates = [
        candidate(LogisticRegression(), inputs[:, 1:], "noise"),
        candidate(LogisticRegression(), inputs[:, :1], "signal"),
    ]
    outcome = cross_validated(candidates, labels, groups, ONCE)
    assert set(outcome.chosen) == {"signal, c"}
    assert outcome_metrics(outcome, labels, groups, resamples=50)["auroc"].value > 0.8


def test_choosing_the_luckiest_of_many_does_not_flatter():
    def auroc(seed):
        rng = np.random.default_rng(seed)
        labels, groups = rng.random(200) < 0.5, np.arange(200).astype(str)
        noise = [candidate(LogisticRegression(), rng.normal(size=(200, 2))) for _ in range(6)]
        outcome = cross_validated(noise, labels, groups, replace(ONCE, folds=3))
        return roc_auc_score(labels, outcome.probabilities[0])

    assert abs(np.mean([auroc(seed) for seed in range(4)]) - 0.5) < 0.06


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers the rows it was fitted on and those it was asked about, by the number in their input."""

    fitted: list = []  # noqa: RUF012
    asked: list = []  # noqa: RUF012

    def fit(self, inputs, labels):
        self.classes_ = np.unique(labels)
        self.seen_ = set(inputs[:, 0].astype(int))
        self.fitted.append(self.seen_)
        return self

    def decision_function(self, inputs):
        self.asked.append((self.seen_, set(inputs[:, 0].astype(int))))
        return inputs[:, 0] % 7

    def predict(self, inputs):
        return self.decision_function(inputs) > 0


def test_no_model_ever_sees_a_row_of_a_source_that_it_is_asked_about():
    _, labels, groups, _ = data()
    Recorder.fitted.clear()
    Recorder.asked.clear()
    numbers = np.arange(120.0)[:, None]
    cross_validated([candidate(Recorder(), numbers), candidate(Recorder(), numbers)], labels, groups, ONCE)
    # Per outer fold: two candidates on five inner folds, and the best on all training rows.
    assert len(Recorder.fitted) == 5 * 11
    folds = grouped_folds(labels, groups, 5, 0)
    for k, (_, test) in enumerate(folds):
        within = Recorder.fitted[11 * k : 11 * (k + 1)]
        # The choice is made without the outer fold's test rows and their sources ...
        assert not set().union(*within) & set(np.flatnonzero(np.isin(groups, groups[test])))
    for fitted, asked in Recorder.asked:
        # ... and no inner fold is scored by a model that learned from its sources.
        assert not {groups[row] for row in fitted} & {groups[row] for row in asked}


def test_paper_takes_the_first_candidate_as_it_comes():
    inputs, labels, groups, generators = data()
    one = generators == "g0"
    inputs, labels, groups = inputs[one], labels[one], groups[one]
    candidates = [candidate(SVC(C=0.5), inputs[:, :2], "first"), candidate(SVC(), inputs[:, :1], "better")]
    outcome = cross_validated(candidates, labels, groups, PAPER)
    assert outcome.probabilities.shape == (1, 60)
    assert set(outcome.chosen) == {"first, c"}
    assert outcome.leaks == 0
    probable = cross_validated([candidate(LogisticRegression(), inputs)], labels, groups, PAPER)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(labels, labels):
        model = SVC(C=0.5).fit(inputs[train, :2], labels[train])
        assert np.array_equal(outcome.flagged[0, test], model.predict(inputs[test, :2]))
        assert np.allclose(outcome.probabilities[0, test], expit(model.decision_function(inputs[test, :2])))
        # Its probabilities, where it has some.
        expected = LogisticRegression().fit(inputs[train], labels[train]).predict_proba(inputs[test])[:, 1]
        assert np.allclose(probable.probabilities[0, test], expected)


def test_leaks_are_refused_or_counted_and_they_flatter():
    """What is peculiar to a source, known from its other rows, looks like skill without grouping."""
    rng = np.random.default_rng(0)
    groups = np.repeat([f"s{k}" for k in range(60)], 4)
    labels = np.repeat(rng.random(60) < 0.5, 4)
    inputs = np.repeat(rng.normal(size=(60, 5)), 4, axis=0)
    candidates = [candidate(SVC(C=100.0, gamma=5.0), inputs)]
    with pytest.raises(InputError, match="learned from their source"):
        cross_validated(candidates, labels, groups, REFUSING)
    leaking, honest = (cross_validated(candidates, labels, groups, way) for way in (PAPER, ONCE))
    assert leaking.leaks > 200
    assert honest.leaks == 0
    flattered, real = (
        outcome_metrics(outcome, labels, groups, resamples=200)["auroc"] for outcome in (leaking, honest)
    )
    assert flattered.low > 0.9
    assert real.low < 0.5 < real.high


def test_transfer_judges_the_rows_of_test_with_models_of_train():
    inputs, labels, groups, generators = data()
    # The second generator's column has the other sign, so what the first teaches misleads.
    inputs[generators == "g1", 0] *= -1
    train, test = generators == "g0", generators == "g1"
    candidates, protocol = candidates_on("svm", inputs), replace(ONCE, folds=3)
    outcome = cross_validated(candidates, labels, groups, protocol, train=train, test=test)
    assert outcome.probabilities.shape == (1, 60)
    assert outcome.leaks == 0
    assert outcome_metrics(outcome, labels[test], groups[test], resamples=50)["auroc"].high < 0.5
    fold = grouped_folds(labels[test], groups[test], 3, 0)[0][1]
    held_out = np.isin(groups, groups[test][fold])
    learned = train & ~held_out
    _, model = fit_best(candidates_on("svm", inputs[learned]), labels[learned], groups[learned])
    assert np.allclose(outcome.probabilities[0, fold], probability_of(model, inputs[test][fold]), atol=1e-12)
    within = cross_validated(candidates, labels, groups, protocol, train=train, test=train)
    alone = cross_validated(candidates_on("svm", inputs[train]), labels[train], groups[train], protocol)
    assert np.array_equal(within.probabilities, alone.probabilities)


def test_inputs_that_do_not_fit_are_refused():
    inputs, labels, groups, _ = data()
    with pytest.raises(InputError, match="x, c: 3 inputs for 120 labels"):
        cross_validated([candidate(SVC(), inputs[:3])], labels, groups, HONEST)
    with pytest.raises(InputError, match="no candidate"):
        cross_validated([], labels, groups, HONEST)
