"""Boosted trees as arrays: they say what scikit-learn's do, and damaged ones are refused."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.trees import COUNT, DEPTH, PENALTY, RATE, SMALLEST_LEAF, Trees, tree_arrays, trees_of

FEATURES = 4


def planted(rows: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which two features tell the class only together; with ties, and weights."""
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(rows, FEATURES)).astype(np.float32)
    inputs[:, 1] = np.round(inputs[:, 1])
    return inputs, inputs[:, 0] * inputs[:, 1] > 0.2, draw.random(rows) + 0.5


@cache
def fitted(rows: int) -> Trees:
    inputs, flags, weights = planted(rows)
    return Trees.fit(inputs, flags, weights, np.arange(rows), np.arange(0), 0)


def test_they_say_what_scikit_learn_says() -> None:
    inputs, flags, weights = planted()
    train, held = np.arange(2500), np.arange(2500, 3000)
    trees = Trees.fit(inputs, flags, weights, train, held, 3)
    model = HistGradientBoostingClassifier(
        max_iter=COUNT,
        max_depth=DEPTH,
        learning_rate=RATE,
        l2_regularization=PENALTY,
        min_samples_leaf=SMALLEST_LEAF,
        early_stopping=False,
        random_state=3,
    ).fit(inputs[train], flags[train], sample_weight=weights[train])
    expected = model.decision_function(inputs)
    assert np.ptp(expected) > 4
    np.testing.assert_allclose(trees.log_odds(inputs), expected, rtol=0, atol=1e-12)
    assert roc_auc_score(flags[held], trees.log_odds(inputs[held])) > 0.95


def test_few_rows_have_small_leaves_and_one_class_says_the_same_of_all() -> None:
    inputs, flags, weights = planted(60)
    assert np.ptp(fitted(60).log_odds(inputs)) > 0
    right = np.flatnonzero(~flags)
    same = Trees.fit(inputs, flags, weights, right, np.arange(0), 0).log_odds(inputs)
    assert len(same) == 60
    assert (same == same[0]).all()
    assert -10 < same[0] < 0


def test_arrays_are_read_back() -> None:
    inputs, _, _ = planted()
    models = [fitted(60), fitted(200)]
    for model, back in zip(models, trees_of(tree_arrays(models), FEATURES), strict=True):
        np.testing.assert_array_equal(model.log_odds(inputs), back.log_odds(inputs))
    assert trees_of({}, FEATURES) == ()


@pytest.mark.parametrize("name", [part.name for part in fields(Trees)])
def test_damaged_arrays_are_refused(name: str) -> None:
    arrays = tree_arrays([fitted(200)])
    key = f"trees/0/{name}"
    wrong: list[np.ndarray] = [arrays[key][:0], arrays[key][None]]
    if arrays[key].dtype.kind == "i":
        wrong += [np.full_like(arrays[key], value) for value in (-1, 10**6)]
        wrong.append(arrays[key].astype(np.float64))
    else:
        wrong += [np.full_like(arrays[key], value) for value in (np.nan, np.inf)]
    for array in wrong:
        with pytest.raises(ValueError, match="tree"):
            trees_of({**arrays, key: array}, FEATURES)
    missing = {other: array for other, array in arrays.items() if other != key}
    with pytest.raises((KeyError, ValueError)):
        trees_of(missing, FEATURES)
    with pytest.raises(ValueError, match="incomplete"):
        trees_of({**arrays, "trees/0/more": arrays[key]}, FEATURES)


def test_trees_over_more_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="not there"):
        trees_of(tree_arrays([fitted(200)]), FEATURES - 3)
