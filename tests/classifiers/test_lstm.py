"""The LSTM: what it learns, when it stops, and what it keeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.lstm import LSTMClassifier
from lrp4rag.classifiers.network import split_once
from lrp4rag.classifiers.threshold import ThresholdClassifier

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
    np.testing.assert_allclose(
        probabilities[:, 1], 1 / (1 + np.exp(-fitted.decision_function(sequences))), rtol=1e-12
    )
    assert np.array_equal(probabilities[:, 1] > 0.5, fitted.predict(sequences))
    assert fitted.gives_probabilities
    assert -np.log(probabilities[np.arange(200), labels.astype(int)]).mean() < 0.3


def test_it_is_torchs_own_lstm_with_the_largest_state_of_all_steps(fitted: LSTMClassifier) -> None:
    sequences, _ = planted(20, seed=1)
    lstm = torch.nn.LSTM(3, 16, 2, batch_first=True)
    weights = {name: torch.from_numpy(array) for name, array in fitted.weights_.items()}
    lstm.load_state_dict({name.removeprefix("lstm."): w for name, w in weights.items() if "lstm" in name})
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


def test_it_stops_where_nothing_is_learnt() -> None:
    generator = np.random.default_rng(0)
    noise, labels = generator.normal(size=(60, 8, 2)), np.arange(60) % 2 == 0
    model = clone(SMALL).set_params(max_epochs=100).fit(noise, labels)
    assert len(model.validation_losses_) == model.n_iter_ + model.patience < 100


def test_the_rows_held_out_share_no_group() -> None:
    labels = np.arange(60) % 2 == 0
    groups = np.array([f"g{k // 3}" for k in range(60)])
    fitted, held_out = split_once(labels, groups, 0.2, np.random.RandomState(0))
    assert sorted([*fitted, *held_out]) == list(range(60))
    assert not set(groups[fitted]) & set(groups[held_out])
    assert 9 <= len(held_out) <= 15
    assert 0.3 < labels[held_out].mean() < 0.7


def test_groups_decide_what_is_held_out() -> None:
    sequences, labels = planted(60)
    alone = clone(SMALL).set_params(max_epochs=1).fit(sequences, labels)
    same = clone(SMALL).set_params(max_epochs=1).fit(sequences, labels, groups=np.arange(60))
    pairs = clone(SMALL).set_params(max_epochs=1).fit(sequences, labels, groups=np.arange(60) // 2)
    np.testing.assert_array_equal(alone.mean_, same.mean_)
    assert not np.array_equal(alone.mean_, pairs.mean_)  # of the rows trained on, which are others now


def test_the_seed_decides_and_torchs_own_is_left_alone() -> None:
    sequences, labels = planted(40)
    short = clone(SMALL).set_params(max_epochs=2)
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = clone(short).fit(sequences, labels)
    second = clone(short).fit(sequences, labels)
    first.decision_function(sequences)
    assert torch.equal(torch.random.get_rng_state(), state)
    other = clone(short).set_params(random_state=1).fit(sequences, labels)
    for name, array in first.weights_.items():
        np.testing.assert_array_equal(array, second.weights_[name])
    assert not np.array_equal(first.weights_["head.weight"], other.weights_["head.weight"])


def test_it_trains_where_gradients_are_off() -> None:
    sequences, labels = planted(40)
    short = clone(SMALL).set_params(max_epochs=2)
    with torch.no_grad():
        inside = clone(short).fit(sequences, labels)
    np.testing.assert_array_equal(
        inside.weights_["head.weight"], short.fit(sequences, labels).weights_["head.weight"]
    )


def test_it_holds_arrays_and_numbers_only(fitted: LSTMClassifier) -> None:
    kinds = {type(array) for array in fitted.weights_.values()}
    assert kinds == {np.ndarray}
    allowed = (np.ndarray, int, float, tuple, list, dict)
    assert all(isinstance(value, allowed) for value in vars(fitted).values())
    assert all(isinstance(loss, float) for loss in fitted.validation_losses_)


def test_vectors_are_sequences_of_one_feature() -> None:
    sequences, labels = planted(40)
    short = clone(SMALL).set_params(max_epochs=2)
    flat = clone(short).fit(sequences[..., 0], labels)
    column = clone(short).fit(sequences[..., :1], labels)
    np.testing.assert_array_equal(
        flat.predict_proba(sequences[..., 0]), column.predict_proba(sequences[..., :1])
    )


def test_a_feature_that_never_varies_does_no_harm() -> None:
    sequences, labels = planted(40)
    sequences[..., 1] = 7
    model = clone(SMALL).set_params(max_epochs=2).fit(sequences, labels)
    assert np.isfinite(model.predict_proba(sequences)).all()


def test_it_says_what_is_wrong(fitted: LSTMClassifier) -> None:
    sequences, labels = planted(40)
    with pytest.raises(ValueError, match=r"shape \(24, 2\), fitted on \(24, 3\)"):
        fitted.predict(sequences[..., :2])
    with pytest.raises(ValueError, match="two groups"):
        clone(SMALL).fit(sequences, labels, groups=np.zeros(40))
    with pytest.raises(ValueError, match="validation must be above 0"):
        clone(SMALL).set_params(validation=0.9).fit(sequences, labels)
