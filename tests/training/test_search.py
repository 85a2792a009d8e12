from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from lrp4rag.classifiers.calibration import fit_calibrated, grouped_folds
from lrp4rag.errors import InputError
from lrp4rag.training.folds import HONEST, PAPER
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import Candidate, candidates_on, cross_validated, transferred

ONCE = replace(HONEST, repeats=1)


def data(sources=60, generators=2, shift=0.8, seed=0):
    """Rows of several generators that share sources; only the first column tells anything."""
    generator = np.random.default_rng(seed)
    count = sources * generators
    labels = generator.random(count) < 0.5
    inputs = generator.normal(size=(count, 4))
    inputs[:, 0] += np.where(labels, shift, -shift)
    groups = np.repeat([f"s{k}" for k in range(sources)], generators)
    return inputs, labels, groups, np.tile([f"g{k}" for k in range(generators)], sources)


def contender(estimator, inputs, name="x"):
    return Candidate(name, "c", "", estimator, inputs)


def test_the_outcome_equals_a_loop_over_folds():
    inputs, labels, groups, _ = data()
    outcome = cross_validated(candidates_on("svm", inputs, "real"), labels, groups, HONEST)
    assert outcome.probabilities.shape == outcome.flagged.shape == (3, 120)
    assert outcome.leaks == 0
    chosen = []
    for repeat in range(3):
        for train, test in grouped_folds(labels, groups, 5, repeat):
            model = fit_calibrated("svm", inputs[train], labels[train], groups[train])
            assert np.allclose(outcome.probabilities[repeat, test], model.predict(inputs[test]), atol=1e-12)
            chosen.append(f"real, svm, {model.settings}")
    assert outcome.chosen == tuple(chosen)
    assert np.array_equal(outcome.flagged, outcome.probabilities >= 0.5)


@pytest.mark.parametrize("protocol", [HONEST, PAPER], ids=lambda protocol: protocol.name)
def test_workers_change_nothing(protocol):
    inputs, labels, groups, _ = data()
    wide = np.random.default_rng(2).normal(size=(120, 1500))  # large enough to be shared between workers
    contenders = [contender(SVC(), wide, "wide"), *candidates_on("svm", inputs, "real")]
    one, two = (cross_validated(contenders, labels, groups, protocol, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.probabilities, two.probabilities)
    assert np.array_equal(one.flagged, two.flagged)
    assert one.chosen == two.chosen


def test_the_better_inputs_win_in_every_fold():
    inputs, labels, groups, _ = data()
    contenders = [
        contender(LogisticRegression(), inputs[:, 1:], "noise"),
        contender(LogisticRegression(), inputs[:, :1], "signal"),
    ]
    outcome = cross_validated(contenders, labels, groups, HONEST)
    assert set(outcome.chosen) == {"signal, c"}
    assert outcome_metrics(outcome, labels, groups, resamples=50)["auroc"].value > 0.8


def noise_auroc(seed, contenders):
    generator = np.random.default_rng(seed)
    labels, groups = generator.random(300) < 0.5, np.arange(300).astype(str)
    noise = [contender(LogisticRegression(), generator.normal(size=(300, 2))) for _ in range(contenders)]
    return outcome_metrics(cross_validated(noise, labels, groups, ONCE), labels, groups, resamples=200)[
        "auroc"
    ]


def test_noise_is_at_chance():
    auroc = noise_auroc(0, contenders=1)
    assert auroc.low < 0.5 < auroc.high
    assert auroc.high - auroc.low < 0.2


def test_choosing_the_luckiest_of_many_does_not_flatter():
    values = [noise_auroc(seed, contenders=6).value for seed in range(4)]
    assert abs(np.mean(values) - 0.5) < 0.06


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
    cross_validated([contender(Recorder(), numbers), contender(Recorder(), numbers)], labels, groups, ONCE)
    # Per outer fold: two contenders on five inner folds, and the best on all training rows.
    assert len(Recorder.fitted) == 5 * 11
    folds = grouped_folds(labels, groups, 5, 0)
    for k, (_, test) in enumerate(folds):
        within = Recorder.fitted[11 * k : 11 * (k + 1)]
        # The choice is made without the outer fold's test rows and their sources ...
        assert not set().union(*within) & set(np.flatnonzero(np.isin(groups, groups[test])))
    for fitted, asked in Recorder.asked:
        # ... and no inner fold is scored by a model that learned from its sources.
        assert not {groups[row] for row in fitted} & {groups[row] for row in asked}


def test_paper_takes_the_first_contender_as_it_comes():
    inputs, labels, groups, generators = data()
    one = generators == "g0"
    inputs, labels, groups = inputs[one], labels[one], groups[one]
    contenders = [
        contender(SVC(C=0.5), inputs[:, :2], "first"),
        contender(SVC(), inputs[:, :1], "better"),
    ]
    outcome = cross_validated(contenders, labels, groups, PAPER)
    assert outcome.probabilities.shape == (1, 60)
    assert set(outcome.chosen) == {"first, c"}
    assert outcome.leaks == 0
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(labels, labels)
    for train, test in folds:
        model = SVC(C=0.5).fit(inputs[train, :2], labels[train])
        assert np.array_equal(outcome.flagged[0, test], model.predict(inputs[test, :2]))
        margins = model.decision_function(inputs[test, :2])
        assert np.allclose(outcome.probabilities[0, test], expit(margins))
    # Own probabilities where there are some.
    plain = [contender(LogisticRegression(), inputs)]
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(labels, labels))
    expected = LogisticRegression().fit(inputs[train], labels[train]).predict_proba(inputs[test])[:, 1]
    assert np.allclose(cross_validated(plain, labels, groups, PAPER).probabilities[0, test], expected)


def test_leaks_are_refused_or_counted_and_they_flatter():
    """What is peculiar to a source, known from its other rows, looks like skill without grouping."""
    generator = np.random.default_rng(0)
    groups = np.repeat([f"s{k}" for k in range(60)], 4)
    labels = np.repeat(generator.random(60) < 0.5, 4)
    inputs = np.repeat(generator.normal(size=(60, 5)), 4, axis=0)
    contenders = [contender(SVC(C=100.0, gamma=5.0), inputs)]
    with pytest.raises(InputError, match="learned from their source"):
        cross_validated(contenders, labels, groups, replace(PAPER, leaks="refused"))
    leaking = cross_validated(contenders, labels, groups, PAPER)
    assert leaking.leaks > 200
    honest = cross_validated(contenders, labels, groups, ONCE)
    assert honest.leaks == 0
    flattered, real = (
        outcome_metrics(outcome, labels, groups, resamples=200)["auroc"] for outcome in (leaking, honest)
    )
    assert flattered.low > 0.9
    assert real.low < 0.5 < real.high


def test_transfer_judges_the_rows_of_test_with_what_train_taught():
    inputs, labels, groups, generators = data()
    # The second generator's column has the other sign, so what the first teaches misleads.
    inputs[generators == "g1", 0] *= -1
    train, test = generators == "g0", generators == "g1"
    contenders = candidates_on("svm", inputs)
    outcome = transferred(contenders, labels, groups, ONCE, train, test)
    assert outcome.probabilities.shape == (1, 60)
    assert outcome.leaks == 0
    assert outcome_metrics(outcome, labels[test], groups[test], resamples=50)["auroc"].high < 0.5
    fold = grouped_folds(labels[test], groups[test], 5, 0)[0][1]
    held_out = np.isin(groups, groups[test][fold])
    model = fit_calibrated("svm", *(array[train & ~held_out] for array in (inputs, labels, groups)))
    assert np.allclose(outcome.probabilities[0, fold], model.predict(inputs[test][fold]), atol=1e-12)
    within = transferred(contenders, labels, groups, ONCE, train, train)
    alone = cross_validated(candidates_on("svm", inputs[train]), labels[train], groups[train], ONCE)
    assert np.array_equal(within.probabilities, alone.probabilities)


def test_an_outcome_can_be_narrowed():
    inputs, labels, groups, generators = data()
    outcome = cross_validated([contender(LogisticRegression(), inputs)], labels, groups, ONCE)
    part = outcome.select(generators == "g1")
    assert np.array_equal(part.probabilities, outcome.probabilities[:, 1::2])
    assert np.array_equal(part.flagged, outcome.flagged[:, 1::2])
    assert part.chosen == outcome.chosen


def test_inputs_that_do_not_fit_are_refused():
    inputs, labels, groups, _ = data()
    with pytest.raises(InputError, match="x, c: 3 inputs for 120 labels"):
        cross_validated([contender(SVC(), inputs[:3])], labels, groups, HONEST)
    with pytest.raises(InputError, match="no contender"):
        cross_validated([], labels, groups, HONEST)
