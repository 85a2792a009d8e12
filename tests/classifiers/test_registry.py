"""What all classifiers have in common: scikit-learn's conventions, seeds, any shape, and safe files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from lrp4rag.classifiers import Features, FittedDetector
from lrp4rag.classifiers.features import VECTORS
from lrp4rag.classifiers.flatten import Flatten
from lrp4rag.classifiers.lstm import LSTMClassifier
from lrp4rag.classifiers.registry import CLASSIFIERS, candidates_of
from lrp4rag.classifiers.threshold import ThresholdClassifier
from lrp4rag.cli import train as data
from lrp4rag.errors import InputError
from lrp4rag.features.parts import MATRIX_SHAPE
from tests.classifiers.samples import labelled_rows

classifiers = pytest.mark.parametrize("classifier", CLASSIFIERS)
QUICK = LSTMClassifier(hidden_size=8, learning_rate=0.02, max_epochs=3)


def first_candidate(classifier: str):
    """The classifier's first candidate; of the LSTM a small one, which is as good for conventions."""
    return clone(QUICK) if classifier == "lstm" else next(iter(candidates_of(classifier).values()))


def sequences_and_labels(rows: int = 60, seed: int = 0):
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % 2 == 0
    return generator.normal(size=(rows, 10, 3)) - 0.5 * labels[:, None, None], labels


@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks warn of what they provoke
@pytest.mark.parametrize(
    "estimator",
    [
        ThresholdClassifier(),
        Flatten(),
        LSTMClassifier(hidden_size=8, layers=1, learning_rate=0.05, batch_size=64, max_epochs=10),
    ],
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
        assert all(
            value is not None
            for name, value in parameters.items()
            if name.endswith("random_state") and "svc" not in name
        )
        assert repr(clone(estimator).get_params()) == repr(parameters)


@classifiers
def test_the_same_data_give_the_same_classifier(classifier: str) -> None:
    inputs, labels = sequences_and_labels()
    one, two = (scores(clone(first_candidate(classifier)).fit(inputs, labels), inputs) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@classifiers
def test_rows_of_any_shape(classifier: str) -> None:
    """Sequences and vectors: those who read vectors find the same in both."""
    inputs, labels = sequences_and_labels()
    flat = inputs.reshape(len(inputs), -1)
    model = clone(first_candidate(classifier)).fit(inputs, labels)
    assert model.classes_.tolist() == [False, True]
    vectors = clone(first_candidate(classifier)).fit(flat, labels)
    assert scores(vectors, flat).shape == (60,)
    if classifier != "lstm":
        np.testing.assert_allclose(scores(model, inputs), scores(vectors, flat), atol=1e-12)
    assert scores(model, inputs)[labels].mean() > scores(model, inputs)[~labels].mean()


@classifiers
def test_they_work_in_a_pipeline(classifier: str) -> None:
    inputs, labels = sequences_and_labels()
    flat = inputs.reshape(len(inputs), -1)
    pipeline = make_pipeline(StandardScaler(), first_candidate(classifier)).fit(flat, labels)
    assert pipeline.predict(flat).shape == (60,)
    assert pipeline.n_features_in_ == 30


@classifiers
def test_a_saved_detector_gives_the_same_probabilities(classifier: str, tmp_path, monkeypatch) -> None:
    first = first_candidate(classifier)
    monkeypatch.setitem(CLASSIFIERS, classifier, lambda: {"first": clone(first)})
    rows, labels, flags = labelled_rows()
    detector = FittedDetector.fit(
        rows, labels, token_flags=flags, features=Features(length=12), classifier=classifier
    )
    loaded = FittedDetector.load(detector.save(tmp_path / "d"))
    test_rows, _, _ = labelled_rows(seed=3)
    probabilities = loaded.predict_proba(test_rows)
    assert np.array_equal(probabilities, detector.predict_proba(test_rows))
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert loaded.card.classifier == classifier
    assert loaded.predict(test_rows[1]).probability == pytest.approx(probabilities[1], rel=1e-5)


def test_an_lstm_detector_reads_the_matrix(tmp_path, monkeypatch) -> None:
    """The matrix of hallucinated rows is low in the middle."""
    monkeypatch.setitem(CLASSIFIERS, "lstm", lambda: {"quick": clone(QUICK).set_params(max_epochs=10)})
    rows, labels, _ = labelled_rows()
    noise = np.random.default_rng(0).normal(size=(len(rows), *MATRIX_SHAPE)).astype(np.float32)
    noise[labels, 20:40] -= 1
    rows = [replace(row, resampled=matrix) for row, matrix in zip(rows, noise, strict=True)]
    detector = FittedDetector.fit(rows, labels, features=Features("matrix", 64), classifier="lstm")
    loaded = FittedDetector.load(detector.save(tmp_path / "d"))
    assert ((loaded.predict_proba(rows) > 0.5) == labels).mean() > 0.9
    with pytest.raises(InputError, match=r"needs resampled R\* \(resampled=\(64, 16\)\)"):
        loaded.predict(replace(rows[0], resampled=None))


def test_the_command_line_offers_them_all() -> None:
    assert ("tokens", *CLASSIFIERS) == data.CLASSIFIERS
    assert tuple(VECTORS) == data.VECTORS


def test_an_unknown_one_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'oracle'; choose from threshold, svm, mlp, forest, lstm"):
        candidates_of("oracle")


def scores(model, inputs) -> np.ndarray:
    if hasattr(model, "decision_function"):
        return model.decision_function(inputs)
    return model.predict_proba(inputs)[:, 1]
