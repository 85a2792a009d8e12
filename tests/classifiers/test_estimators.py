"""Classifiers of vectors: what all have in common, the threshold worked out by hand, and the LSTM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from lrp4rag.classifiers import Features, Model
from lrp4rag.classifiers.registry import (
    CLASSIFIERS,
    LSTMClassifier,
    ThresholdClassifier,
    candidates_of,
    split_once,
)
from lrp4rag.classifiers.scorers import arrays_of, probabilities
from lrp4rag.classifiers.vectors import VECTORS
from lrp4rag.cli.train import CLASSIFIERS as OFFERED
from lrp4rag.cli.train import VECTORS as OFFERED_VECTORS
from lrp4rag.features.parts import MATRIX_SHAPE
from lrp4rag.training.vector_detector import fit_vector_detector
from lrp4rag.util.errors import InputError
from tests.classifiers.samples import labelled_rows

classifiers = pytest.mark.parametrize("classifier", CLASSIFIERS)
QUICK = LSTMClassifier(hidden_size=8, learning_rate=0.02, max_epochs=3)


def first_candidate(classifier: str):
    """The classifier's first candidate; of LSTM and forest a small one, which is as good for conventions."""
    found = clone(QUICK if classifier == "lstm" else next(iter(candidates_of(classifier).values())))
    return found.set_params(randomforestclassifier__n_estimators=20) if classifier == "forest" else found


def sequences_and_labels(rows: int = 60, seed: int = 0):
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % 2 == 0
    return generator.normal(size=(rows, 10, 3)) - 0.5 * labels[:, None, None], labels


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks warn of what they provoke
@pytest.mark.parametrize(
    "estimator",
    [ThresholdClassifier(), LSTMClassifier(hidden_size=8, layers=1, learning_rate=0.1, max_epochs=4)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learns_own_checks(estimator) -> None:
    results = check_estimator(estimator, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 20


@classifiers
def test_candidates_are_unfitted_seeded_and_clonable(classifier: str) -> None:
    for settings, estimator in candidates_of(classifier).items():
        assert settings
        assert not hasattr(estimator, "classes_")
        parameters = estimator.get_params()
        seeds = {name for name in parameters if name.endswith("random_state")} - {"svc__random_state"}
        assert all(parameters[name] is not None for name in seeds)
        assert repr(clone(estimator).get_params()) == repr(parameters)


@classifiers
def test_rows_of_any_shape(classifier: str) -> None:
    """Sequences and vectors: those who read vectors find the same in both."""
    inputs, labels = sequences_and_labels()
    flat = inputs.reshape(len(inputs), -1)
    model = first_candidate(classifier).fit(inputs, labels)
    assert model.classes_.tolist() == [False, True]
    vectors = first_candidate(classifier).fit(flat, labels)
    assert scores(vectors, flat).shape == (60,)
    if classifier != "lstm":
        np.testing.assert_allclose(scores(model, inputs), scores(vectors, flat), atol=1e-12)
    assert scores(model, inputs)[labels].mean() > scores(model, inputs)[~labels].mean()


@classifiers
def test_a_saved_detector_gives_the_same_probabilities(classifier: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(CLASSIFIERS, classifier, {"first": first_candidate(classifier)})
    rows, labels, flags = labelled_rows()
    detector = fit_vector_detector(
        rows, labels, token_flags=flags, features=Features(length=12), classifier=classifier
    )
    loaded = Model.load(detector.save(tmp_path / "d"))
    test_rows, _, _ = labelled_rows(seed=3)
    probabilities = loaded.predict_proba(test_rows)
    assert np.array_equal(probabilities, detector.predict_proba(test_rows))
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert loaded.card.classifier == classifier


def test_an_lstm_detector_reads_the_matrix(tmp_path, monkeypatch) -> None:
    """The matrix of hallucinated rows is low in the middle."""
    monkeypatch.setitem(CLASSIFIERS, "lstm", {"quick": clone(QUICK).set_params(max_epochs=10)})
    rows, labels, _ = labelled_rows()
    noise = np.random.default_rng(0).normal(size=(len(rows), *MATRIX_SHAPE)).astype(np.float32)
    noise[labels, 20:40] -= 1
    rows = [replace(row, resampled=matrix) for row, matrix in zip(rows, noise, strict=True)]
    detector = fit_vector_detector(rows, labels, features=Features("matrix", 64), classifier="lstm")
    loaded = Model.load(detector.save(tmp_path / "d"))
    assert ((loaded.predict_proba(rows) > 0.5) == labels).mean() > 0.9
    with pytest.raises(InputError, match=r"needs resampled R\* \(resampled=\(64, 16\)\)"):
        loaded.predict(replace(rows[0], resampled=None))


def test_the_command_line_offers_them_all_and_an_unknown_one_is_refused() -> None:
    assert ("tokens", "text", *CLASSIFIERS) == OFFERED
    assert tuple(VECTORS) == OFFERED_VECTORS
    with pytest.raises(InputError, match="'oracle'; choose from threshold, svm, mlp, forest, lstm"):
        candidates_of("oracle")


def scores(model, inputs) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return model.decision_function(inputs)
    return model.predict_proba(inputs)[:, 1]


@classifiers
def test_arrays_score_as_the_estimator_does(classifier: str) -> None:
    inputs, labels = sequences_and_labels()
    model = first_candidate(classifier).fit(inputs, labels)
    fresh = sequences_and_labels(seed=1)[0]
    found = probabilities(classifier, arrays_of(classifier, model), fresh)
    np.testing.assert_allclose(found, expit(scores(model, fresh)), rtol=1e-6)


def rows_with(means: list[float]) -> np.ndarray:
    """Rows of two values around each mean."""
    return np.array([[mean - 1, mean + 1] for mean in means])


def test_the_threshold_with_the_best_accuracy_on_the_training_rows() -> None:
    """Means 0, 1, 2, 8 and 10 become 0, 0.1, 0.2, 0.8 and 1: above 0.2 and up to 0.8, no row is wrong."""
    labels = np.array([True, True, True, False, False])
    model = ThresholdClassifier(trim=0).fit(rows_with([0, 1, 2, 8, 10]), labels)
    assert (model.low_, model.high_) == (0, 10)
    assert model.threshold_ == pytest.approx(0.51)  # 0.21, 0.22 ... 0.80 are equally good: the middle one
    assert model.predict(rows_with([5.0, 5.2, -100])).tolist() == [True, False, True]
    np.testing.assert_allclose(model.decision_function(rows_with([0, 5.1, 10, 20])), [0.51, 0, -0.49, -1.49])


def test_extremes_do_not_set_the_scale() -> None:
    means = [*range(101), 1e6]
    labels = np.arange(102) < 30
    model = ThresholdClassifier(trim=0.02).fit(rows_with(means), labels)
    np.testing.assert_allclose([model.low_, model.high_], np.quantile(means, [0.02, 0.98]))
    assert model.high_ < 100
    assert model.score(rows_with(means), labels) == 1


def test_the_direction_is_not_learnt() -> None:
    """Where low means are faithful, nothing (or everything) is flagged rather than the other side."""
    labels = np.array([False] * 6 + [True] * 4)
    model = ThresholdClassifier(trim=0).fit(rows_with([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), labels)
    assert not model.predict(rows_with([1, 5, 10])).any()
    assert np.diff(model.decision_function(rows_with([1, 5, 10]))).max() < 0


def test_equal_rows_and_wrong_trims() -> None:
    labels = np.array([True, True, False])
    model = ThresholdClassifier().fit(rows_with([2, 2, 2]), labels)
    assert model.predict(rows_with([2])).tolist() == [True]  # two of three rows are
    with pytest.raises(ValueError, match="trim must be at least 0"):
        ThresholdClassifier(trim=0.5).fit(rows_with([1, 2, 3]), labels)


SMALL = LSTMClassifier(hidden_size=16, learning_rate=0.02, max_epochs=15)


def planted(rows: int, seed: int = 0):
    """A rise before a fall in hallucinated rows, a fall before a rise in the others: all means are equal."""
    generator = np.random.default_rng(seed)
    sequences = generator.normal(0, 0.5, (rows, 24, 3))
    labels = np.arange(rows) % 2 == 0
    for row, label in zip(sequences, labels, strict=True):
        start, sign = generator.integers(0, 14), 1 if label else -1
        row[start : start + 5] += sign
        row[start + 5 : start + 10] -= sign
    return sequences, labels


@pytest.fixture(scope="module")
def fitted() -> LSTMClassifier:
    return clone(SMALL).fit(*planted(200))


def test_it_learns_an_order_that_the_mean_does_not_show(fitted: LSTMClassifier) -> None:
    sequences, labels = planted(200, seed=1)
    assert roc_auc_score(labels, fitted.decision_function(sequences)) > 0.97
    assert fitted.score(sequences, labels) > 0.9
    mean = ThresholdClassifier().fit(*planted(200)).decision_function(sequences)
    assert 0.35 < roc_auc_score(labels, mean) < 0.65


def test_it_gives_probabilities(fitted: LSTMClassifier) -> None:
    sequences, labels = planted(200, seed=1)
    probabilities = fitted.predict_proba(sequences)
    assert probabilities.shape == (200, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    np.testing.assert_allclose(probabilities[:, 1], expit(fitted.decision_function(sequences)), rtol=1e-12)
    assert np.array_equal(probabilities[:, 1] > 0.5, fitted.predict(sequences))
    assert fitted.gives_probabilities
    assert -np.log(probabilities[np.arange(200), labels.astype(int)]).mean() < 0.3


def test_it_is_torchs_own_lstm_with_the_largest_state_of_all_steps(fitted: LSTMClassifier) -> None:
    sequences, _ = planted(20, seed=1)
    lstm = torch.nn.LSTM(3, 16, 2, batch_first=True)
    weights = {name: torch.from_numpy(array) for name, array in fitted.weights_.items()}
    lstm.load_state_dict({name[5:]: w for name, w in weights.items() if name.startswith("lstm.")})
    inputs = torch.from_numpy((sequences - fitted.mean_) / fitted.scale_).float()
    with torch.no_grad():
        states = lstm(inputs)[0].max(1).values
    expected = states @ weights["head.weight"][0] + weights["head.bias"]
    np.testing.assert_allclose(fitted.decision_function(sequences), expected, rtol=1e-4, atol=1e-5)


def test_the_best_epoch_on_the_rows_held_out_is_kept(fitted: LSTMClassifier) -> None:
    losses = fitted.validation_losses_
    assert fitted.n_iter_ == int(np.argmin(losses)) + 1
    assert len(losses) == 15 or len(losses) == fitted.n_iter_ + fitted.patience
    # Training that ends there anyhow comes to the same weights.
    ended = clone(SMALL).set_params(max_epochs=fitted.n_iter_).fit(*planted(200))
    assert ended.validation_losses_ == losses[: fitted.n_iter_]
    for name, array in fitted.weights_.items():
        np.testing.assert_array_equal(array, ended.weights_[name])

    # It stops where nothing is learnt.
    noise = np.random.default_rng(0).normal(size=(60, 8, 2))
    model = clone(SMALL).set_params(max_epochs=100).fit(noise, np.arange(60) % 2 == 0)
    assert len(model.validation_losses_) == model.n_iter_ + model.patience < 100


def test_the_rows_held_out_share_no_group() -> None:
    labels, groups = np.arange(60) % 2 == 0, np.arange(60) // 3
    fitted, held_out = split_once(labels, groups, 0.2, np.random.RandomState(0))
    assert sorted([*fitted, *held_out]) == list(range(60))
    assert not set(groups[fitted]) & set(groups[held_out])
    assert 9 <= len(held_out) <= 15
    assert 0.3 < labels[held_out].mean() < 0.7


def test_groups_decide_what_is_held_out() -> None:
    sequences, labels = planted(60)
    given = (None, np.arange(60), np.arange(60) // 2)
    short = clone(SMALL).set_params(max_epochs=1)
    alone, same, pairs = (clone(short).fit(sequences, labels, groups=groups) for groups in given)
    np.testing.assert_array_equal(alone.mean_, same.mean_)
    assert not np.array_equal(alone.mean_, pairs.mean_)  # of the rows trained on, which are others now


def test_the_seed_decides_and_torchs_own_is_left_alone() -> None:
    sequences, labels = planted(40)
    sequences[..., 1] = 7  # a feature that never varies does no harm
    short = clone(SMALL).set_params(max_epochs=2)
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = clone(short).fit(sequences, labels)
    with torch.no_grad():  # it trains where gradients are off, too
        second = clone(short).fit(sequences, labels)
    assert np.isfinite(first.decision_function(sequences)).all()
    assert torch.equal(torch.random.get_rng_state(), state)
    other = clone(short).set_params(random_state=1).fit(sequences, labels)
    for name, array in first.weights_.items():
        np.testing.assert_array_equal(array, second.weights_[name])
    assert not np.array_equal(first.weights_["head.weight"], other.weights_["head.weight"])


def test_it_says_what_is_wrong(fitted: LSTMClassifier) -> None:
    sequences, labels = planted(40)
    with pytest.raises(ValueError, match=r"shape \(24, 2\), fitted on \(24, 3\)"):
        fitted.predict(sequences[..., :2])
    with pytest.raises(ValueError, match="two groups"):
        clone(SMALL).fit(sequences, labels, groups=np.zeros(40))
    with pytest.raises(ValueError, match="validation must be above 0"):
        clone(SMALL).set_params(validation=0.9).fit(sequences, labels)
