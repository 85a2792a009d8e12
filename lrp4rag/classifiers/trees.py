"""`Trees`: boosted regression trees as plain arrays, learned by scikit-learn and read without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import AlarmInput
from lrp4rag.classifiers.decision import COLUMNS, Claimed
from lrp4rag.classifiers.ensemble import Arrays, Flags, Numbers, Scores, mean_log_odds

COUNT, DEPTH, RATE, PENALTY = 120, 4, 0.08, 10.0
"""Trees, their depth, and how much each adds; the penalty on leaves."""
SMALLEST_LEAF, LEAVES = 40, 50
"""Rows of a leaf: so many, or this part of few rows."""
PLACE = "trees"
"""Of their arrays, among a model's."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """T trees of up to N nodes, and `base` (1,), the log odds before the first.

    A row goes on from the first node of a tree, to the `left` where its `feature` is at most the `threshold`,
    else to the `right`; a leaf goes on to itself. `value` is what leaves add to the log odds. All (T, N).
    """

    base: Scores
    feature: NDArray[np.int32]
    threshold: Scores
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Scores

    @classmethod
    def fit(
        cls, inputs: NDArray[Any], flags: Flags, weights: Scores, train: Numbers, held_out: Numbers, seed: int
    ) -> Trees:
        """Learn from the rows `train`, which count as their `weights` (N,) say; the rows `held_out` are for
        base models that stop by them."""
        learned = flags[train]
        if learned.all() or not learned.any():
            return cls.constant(float(np.clip(learned.mean(), 1e-3, 1 - 1e-3)) if len(learned) else 0.5)
        # A verdict does without: it takes long to import.
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=COUNT,
            max_depth=DEPTH,
            learning_rate=RATE,
            l2_regularization=PENALTY,
            min_samples_leaf=max(1, min(SMALLEST_LEAF, len(train) // LEAVES)),
            early_stopping=False,
            random_state=seed,
        ).fit(inputs[train], learned, sample_weight=weights[train])
        return cls._of_nodes(
            [predictors[0].nodes for predictors in model._predictors], float(model._baseline_prediction[0, 0])
        )

    @classmethod
    def constant(cls, probability: float) -> Trees:
        """Return trees that say the same of each row."""
        return cls._of_nodes([], float(np.log(probability / (1 - probability))))

    @classmethod
    def _of_nodes(cls, trees: Sequence[NDArray[Any]], base: float) -> Trees:
        """Read the nodes that scikit-learn keeps of each tree."""
        shape = len(trees), max((len(nodes) for nodes in trees), default=1)
        itself = np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape)
        model = cls(
            np.array([base]),
            np.zeros(shape, dtype=np.int32),
            np.zeros(shape),
            itself.copy(),
            itself.copy(),
            np.zeros(shape),
        )
        for k, nodes in enumerate(trees):
            inner = np.flatnonzero(nodes["is_leaf"] == 0)
            model.feature[k, inner] = nodes["feature_idx"][inner]
            model.threshold[k, inner] = nodes["num_threshold"][inner]
            model.left[k, inner], model.right[k, inner] = nodes["left"][inner], nodes["right"][inner]
            model.value[k, : len(nodes)] = nodes["value"]
        return model

    def log_odds(self, inputs: NDArray[Any]) -> Scores:
        """Return the log odds of each row, (rows,); raises `IndexError` where it lacks a feature."""
        trees = np.arange(len(self.feature))
        node = np.zeros((len(inputs), len(trees)), dtype=np.intp)
        rows = np.arange(len(inputs))[:, None]
        for _ in range(DEPTH):
            below = inputs[rows, self.feature[trees, node]] <= self.threshold[trees, node]
            node = np.where(below, self.left[trees, node], self.right[trees, node])
        total: Scores = self.base[0] + self.value[trees, node].sum(1)
        return total


def tree_arrays(models: Sequence[Trees]) -> dict[str, NDArray[Any]]:
    """Return what was learned, by name; `trees_of` reads it back."""
    return {
        f"{PLACE}/{k}/{array.name}": getattr(model, array.name)
        for k, model in enumerate(models)
        for array in fields(Trees)
    }


def trees_of(arrays: Arrays, columns: int) -> tuple[Trees, ...]:
    """Read the trees among a model's arrays, none where it has none. Raises `KeyError` or `ValueError` where
    they are not trees over so many columns."""
    models: list[Trees] = []
    while f"{PLACE}/{len(models)}/base" in arrays:
        models.append(Trees(*(arrays[f"{PLACE}/{len(models)}/{array.name}"] for array in fields(Trees))))
    for model in models:
        shape = model.feature.shape
        if model.base.shape != (1,) or len(shape) != 2 or not shape[1]:
            raise ValueError("arrays of trees have other shapes")
        node_arrays = model.feature, model.threshold, model.left, model.right, model.value
        if any(array.shape != shape for array in node_arrays):
            raise ValueError("arrays of trees differ in their shapes")
        if not all(np.isfinite(array).all() for array in (model.base, model.threshold, model.value)):
            raise ValueError("a number of a tree is NaN or infinite")
        for array, limit in ((model.feature, columns), (model.left, shape[1]), (model.right, shape[1])):
            if array.dtype.kind != "i" or (array.size and not (array.min() >= 0 and array.max() < limit)):
                raise ValueError("a tree goes on to what is not there")
    if tree_arrays(models).keys() != {name for name in arrays if name.startswith(f"{PLACE}/")}:
        raise ValueError("the arrays of trees are incomplete")
    return tuple(models)


def trees_for(read: AlarmInput, arrays: Arrays) -> tuple[Trees, ...]:
    """Read the trees of a model by what its card says of its input; raises as `trees_of` does, and
    `ValueError` where its rule needs trees and there are none."""
    trees = trees_of(arrays, len(COLUMNS) + len(read.alarms))
    if bool(trees) != bool(read.reading.tree_weight):
        raise ValueError("its trees are not those of its rule")
    return trees


def with_trees(claims: Claimed, trees: Sequence[Trees]) -> Claimed:
    """Add what trees make of claims, where there are any."""
    return (
        replace(claims, by_trees=mean_log_odds(trees, claims.table.astype(np.float32))) if trees else claims
    )
