import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lrp4rag.classifiers.calibration import (
    Candidate,
    balanced_weights,
    fit_best,
    grouped_folds,
    probability_of,
    worth,
)
from lrp4rag.util.errors import InputError


def data(count=120, columns=3, seed=0):
    """Overlapping normal classes; two rows share a source."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 2 == 0
    inputs = np.where(labels, 0.7, -0.7)[:, None] + generator.normal(size=(count, columns))
    return inputs, labels, np.array([f"s{k // 2}" for k in range(count)])


def candidate(estimator, inputs, name="x"):
    return Candidate(name, type(estimator).__name__, "", estimator, inputs)


def test_no_group_is_on_both_sides_and_every_row_is_tested_once():
    labels, groups = np.arange(60) % 2 == 0, (np.arange(60) // 3).astype(str)
    tested = []
    for train, test in grouped_folds(labels, groups, 5, seed=0):
        assert not set(groups[train]) & set(groups[test])
        tested += list(test)
    assert sorted(tested) == list(range(60))


def test_too_few_sources_of_a_class_are_refused_with_both_numbers():
    labels = np.array([True, False, False, False, False, False])
    with pytest.raises(InputError, match=r"5 folds need at least 5 sources with hallucinated.*there are 1"):
        grouped_folds(labels, np.arange(6).astype(str), 5, seed=0)


@pytest.mark.parametrize("estimator", [SVC(), GaussianNB()], ids=["decision_function", "predict_proba"])
def test_calibration_from_scores_at_hand_is_that_of_scikit_learn(estimator):
    inputs, labels, groups = data()
    _, model = fit_best([candidate(estimator, inputs)], labels, groups)
    folds = grouped_folds(labels, groups, 5, seed=0)
    reference = CalibratedClassifierCV(estimator, ensemble=False, cv=folds).fit(inputs, labels)
    fresh = data(seed=1)[0]
    np.testing.assert_allclose(model.predict_proba(fresh), reference.predict_proba(fresh), atol=1e-9)


def test_the_choice_is_the_one_with_the_best_out_of_fold_auroc():
    """Candidates of both prediction methods, on inputs of different shapes, against scikit-learn."""
    inputs, labels, groups = data()
    noise = np.random.default_rng(5).normal(size=(120, 7))
    estimators = {"noise": SVC(), "nb": GaussianNB(), "good": make_pipeline(StandardScaler(), SVC())}
    given = {"noise": noise, "nb": inputs[:, :1], "good": inputs}
    candidates = [candidate(model, given[name], name) for name, model in estimators.items()]
    folds = grouped_folds(labels, groups, 5, seed=0)
    expected = {}
    for name, model in estimators.items():
        method = "predict_proba" if name == "nb" else "decision_function"
        scores = cross_val_predict(model, given[name], labels, cv=folds, method=method)
        expected[name] = roc_auc_score(labels, scores[:, 1] if name == "nb" else scores)
    best, _ = fit_best(candidates, labels, groups)
    assert best.name == max(expected, key=expected.get) == "good"
    # The first of equals.
    twice = [candidate(SVC(), inputs, "one"), candidate(SVC(), inputs, "two")]
    assert fit_best(twice, labels, groups)[0].name == "one"


def test_accuracy_can_choose_otherwise_than_auroc():
    """Two overlapping bells rank better than a coin that is right in 85 % of rows, and decide worse."""

    class Plain(ClassifierMixin, BaseEstimator):
        def fit(self, inputs, labels):
            self.classes_ = np.unique(labels)
            return self

        def decision_function(self, inputs):
            return inputs[:, 0]

    generator = np.random.default_rng(0)
    labels, groups = np.arange(400) % 2 == 0, np.arange(400).astype(str)
    bells = generator.permutation(norm.ppf((np.arange(200) + 0.5) / 200)).repeat(2) + 1.8 * labels
    coin = np.where(labels ^ (generator.permutation(400) < 60), 1.0, -1.0)
    candidates = [candidate(Plain(), bells[:, None], "bells"), candidate(Plain(), coin[:, None], "coin")]
    assert fit_best(candidates, labels, groups)[0].name == "bells"
    assert fit_best(candidates, labels, groups, scoring="accuracy")[0].name == "coin"


def test_accuracy_is_of_the_decisions_that_will_be_made():
    labels = np.arange(100) % 2 == 0
    shifted = np.where(labels, 6.0, 4.0)  # calibrated, 5 is the middle; by itself it flags everything
    assert worth("accuracy", labels, shifted, 0.0, calibrated=True) == 1
    assert worth("accuracy", labels, shifted, 0.0, calibrated=False) == 0.5
    assert worth("auroc", labels, shifted, 0.0, calibrated=False) == 1


class Recorder(ClassifierMixin, BaseEstimator):
    """Gives the labels' mean as everyone's probability; remembers the rows and groups it was fitted on."""

    gives_probabilities = True
    calls: list = []  # noqa: RUF012

    def fit(self, inputs, labels, groups=None):
        self.classes_ = np.unique(labels)
        self.mean_ = labels.mean()
        self.calls.append((inputs[:, 0].astype(int), groups))
        return self

    def predict_proba(self, inputs):
        return np.tile([1 - self.mean_, self.mean_], (len(inputs), 1))


def test_an_estimator_that_gives_probabilities_is_not_calibrated_and_gets_the_groups():
    _, labels, groups = data()
    Recorder.calls.clear()
    numbers = np.arange(120.0)[:, None]
    _, model = fit_best([candidate(Recorder(), numbers)], labels, groups)
    assert isinstance(model, Recorder)
    # It is the only candidate: nothing to choose, nothing to calibrate, so no inner folds.
    ((rows, _),) = Recorder.calls
    assert rows.tolist() == list(range(120))
    assert probability_of(model, numbers) == pytest.approx(np.full(120, 0.5))
    # Beside another it is scored on inner folds, with the groups of their training rows.
    fit_best([candidate(Recorder(), numbers), candidate(Recorder(), numbers)], labels, groups)
    assert len(Recorder.calls) == 12
    for rows, seen in Recorder.calls:
        assert groups[rows].tolist() == seen.tolist()


def test_only_the_rows_given_are_used():
    inputs, labels, groups = data()
    rows = np.arange(20, 120)
    poisoned = inputs.copy()
    poisoned[:20] = np.nan  # an error wherever they are touched
    _, model = fit_best([candidate(SVC(), poisoned)], labels, groups, rows)
    _, same = fit_best([candidate(SVC(), inputs[20:])], labels[20:], groups[20:])
    assert np.array_equal(model.predict_proba(inputs), same.predict_proba(inputs))


def test_both_classes_of_each_set_count_as_many():
    labels = np.array([True, True, True, False, False, True, False, False, True])
    sets = np.array(["a", "a", "a", "a", "b", "b", "b", "b", "c"])
    weights = balanced_weights(labels, sets)
    for name in "ab":
        inside = sets == name
        assert weights[inside & labels].sum() == pytest.approx(weights[inside & ~labels].sum())
        assert weights[inside].sum() == pytest.approx(inside.sum())
    assert weights[8] == 1
