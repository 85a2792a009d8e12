"""Fitted classifiers of vectors as arrays: what a detector file holds of them, and how they score rows.

Scikit-learn fits; here are the few lines that each needs to judge, so that nothing has to be unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from lrp4rag.classifiers.calibration import Calibrated, Sigmoid
from lrp4rag.classifiers.network import recurrent_logits

Array = NDArray[Any]
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scorer:
    """`learned` gives the arrays of a fitted estimator of `registry.CLASSIFIERS`, and `scores` what it makes
    of rows from these arrays, which are its keyword arguments: scores (rows,) that rise with the evidence."""

    learned: Callable[[Any], dict[str, Array]]
    scores: Callable[..., Scores]


def arrays_of(classifier: str, model: Any) -> dict[str, Array]:
    """Everything that a classifier learned, with its calibration; see `calibration.fit_best`."""
    calibrated = isinstance(model, Calibrated)
    sigmoid = model.sigmoid if calibrated else Sigmoid(1.0, 0.0)
    estimator = model.model if calibrated else model
    learned = SCORERS[classifier].learned(estimator)
    return {"sigmoid": np.array([sigmoid.slope, sigmoid.offset])} | {
        name: np.asarray(array) for name, array in learned.items()
    }


def probabilities(classifier: str, arrays: Mapping[str, Array], rows: Array) -> Scores:
    """That rows (N, length) or (N, length, features) are hallucinated, (N,).

    Raises `KeyError`, `RuntimeError`, `TypeError` or `ValueError` for arrays that `arrays_of` did not give.
    """
    learned = dict(arrays)
    slope, offset = learned.pop("sigmoid").astype(float)
    return Sigmoid(slope, offset).predict(SCORERS[classifier].scores(rows, **learned))


def _of_threshold(model: Any) -> dict[str, Array]:
    return {"low": np.array(model.low_), "high": np.array(model.high_), "cut": np.array(model.threshold_)}


def _threshold(rows: Array, *, low: Array, high: Array, cut: Array) -> Scores:
    means = _flat(rows).mean(1, dtype=np.float64)
    scaled: Scores = (means - float(low)) / ((float(high) - float(low)) or 1.0)
    return float(cut) - scaled


def _of_svm(pipeline: Any) -> dict[str, Array]:
    machine = pipeline[-1]
    return {
        **_scaling(pipeline),
        "vectors": machine.support_vectors_,
        "weights": machine.dual_coef_[0],
        "offset": machine.intercept_[0],
        "gamma": np.array(machine._gamma),  # what gamma="scale" came to has no public name
    }


def _svm(
    rows: Array, *, mean: Array, scale: Array, vectors: Array, weights: Array, offset: Array, gamma: Array
) -> Scores:
    kernel = rbf_kernel(_standardised(rows, mean, scale), vectors, gamma=float(gamma))
    scores: Scores = kernel @ weights + float(offset)
    return scores


def _of_mlp(pipeline: Any) -> dict[str, Array]:
    network = pipeline[-1]
    (inner, outer), (inner_bias, outer_bias) = network.coefs_, network.intercepts_
    layers = {"inner": inner, "inner_bias": inner_bias, "outer": outer[:, 0], "outer_bias": outer_bias[0]}
    return _scaling(pipeline) | layers


def _mlp(
    rows: Array,
    *,
    mean: Array,
    scale: Array,
    inner: Array,
    inner_bias: Array,
    outer: Array,
    outer_bias: Array,
) -> Scores:
    """The log odds of `MLPClassifier`, whose probabilities are calibrated as they are: hence the sigmoid."""
    hidden = np.maximum(_standardised(rows, mean, scale) @ inner + inner_bias, 0)
    return Sigmoid(1.0, 0.0).predict(hidden @ outer + float(outer_bias))


def _of_forest(pipeline: Any) -> dict[str, Array]:
    trees = [tree.tree_ for tree in pipeline[-1].estimators_]
    first = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]

    def children(which: str) -> Array:
        own = zip((getattr(tree, which) for tree in trees), first, strict=True)
        return np.concatenate([np.where(child < 0, -1, child + start) for child, start in own])

    return {
        "roots": first,
        "left": children("children_left"),
        "right": children("children_right"),
        "column": np.concatenate([tree.feature for tree in trees]),
        "cut": np.concatenate([tree.threshold for tree in trees]),
        "share": np.concatenate([tree.value[:, 0, 1] for tree in trees]),
    }


def _forest(
    rows: Array, *, roots: Array, left: Array, right: Array, column: Array, cut: Array, share: Array
) -> Scores:
    """The mean over the trees of the share of hallucinated training rows in each row's leaf."""
    flat = _flat(rows).astype(np.float32)
    number = np.arange(len(left))
    inner = left >= 0
    # Children come after their parents, so that every walk ends.
    if not ((left > number) == inner).all() or not ((right > number) == inner).all():
        raise ValueError("the trees of the forest are none")
    node = np.tile(roots, (len(flat), 1))
    while (walking := inner[node]).any():
        row, _ = np.nonzero(walking)
        at = node[walking]
        node[walking] = np.where(flat[row, column[at]] <= cut[at], left[at], right[at])
    scores: Scores = share[node].mean(1)
    return scores


def _of_lstm(model: Any) -> dict[str, Array]:
    return {"mean": model.mean_, "scale": model.scale_, **model.weights_}


def _lstm(rows: Array, *, mean: Array, scale: Array, **weights: Array) -> Scores:
    sequences = rows.reshape(*rows.shape[:2], -1)
    return recurrent_logits(weights, ((sequences - mean) / scale).astype(np.float32))


def _scaling(pipeline: Any) -> dict[str, Array]:
    scaler = pipeline[-2]
    return {"mean": scaler.mean_, "scale": scaler.scale_}


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)


def _standardised(rows: Array, mean: Array, scale: Array) -> Array:
    flat = _flat(rows)
    if mean.shape != flat.shape[1:] or scale.shape != mean.shape or not (scale > 0).all():
        raise ValueError(f"mean and scale are not those of {flat.shape[1]} columns")
    return (flat - mean) / scale


SCORERS: dict[str, Scorer] = {
    "threshold": Scorer(_of_threshold, _threshold),
    "svm": Scorer(_of_svm, _svm),
    "mlp": Scorer(_of_mlp, _mlp),
    "forest": Scorer(_of_forest, _forest),
    "lstm": Scorer(_of_lstm, _lstm),
}
