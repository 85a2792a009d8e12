"""The token classifier: what it learns, and what it shares with the LSTM is tested there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from lrp4rag.classifiers.tokens import TokenClassifier

SMALL = TokenClassifier(hidden_size=8, learning_rate=0.02, batch_size=64, dropout=0.0)


def planted(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Made up where one feature is high, or where the product of two others is."""
    inputs = np.random.default_rng(seed).normal(size=(rows, 5))
    return inputs, inputs[:, 0] + 2 * inputs[:, 1] * inputs[:, 2] > 0.5


def test_it_learns_a_product_that_no_line_shows() -> None:
    model = clone(SMALL).fit(*planted(2000))
    inputs, labels = planted(500, seed=1)
    assert roc_auc_score(labels, model.decision_function(inputs)) > 0.95
    probabilities = model.predict_proba(inputs)[:, 1]
    assert abs(probabilities.mean() - labels.mean()) < 0.06


def test_dropout_is_for_training_only() -> None:
    model = clone(SMALL).set_params(dropout=0.5, max_epochs=2).fit(*planted(200))
    inputs, _ = planted(50, seed=1)
    np.testing.assert_array_equal(model.decision_function(inputs), model.decision_function(inputs))


def test_rows_of_one_precision_or_the_other() -> None:
    inputs, labels = planted(200)
    short = clone(SMALL).set_params(max_epochs=2)
    wide = clone(short).fit(inputs, labels).decision_function(inputs)
    lean = clone(short).fit(inputs.astype(np.float32), labels).decision_function(inputs.astype(np.float32))
    np.testing.assert_allclose(wide, lean, atol=1e-3)


def test_another_number_of_features_is_refused() -> None:
    model = clone(SMALL).set_params(max_epochs=1).fit(*planted(100))
    with pytest.raises(ValueError, match="features"):
        model.predict(np.zeros((2, 4)))


def test_it_keeps_scikit_learns_conventions() -> None:
    model = TokenClassifier(hidden_size=4, batch_size=16, max_epochs=30, learning_rate=0.02, patience=30)
    check_estimator(model, on_skip=None)
