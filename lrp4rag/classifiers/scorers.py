"""Fitted classifiers of vectors as arrays: what a detector file holds of them, and how they score rows.

Scikit-learn fits; here are the few lines that each needs to judge, so that nothing has to be unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.calibration import Calibrated, Scores, Sigmoid
from lrp4rag.classifiers.network import recurrent_logits
from lrp4rag.classifiers.vectors import flattened

Array = NDArray[Any]
Learned = dict[str, Any]


def arrays_of(classifier: str, model: Any) -> dict[str, Array]:
    """Return all that a classifier learned, with its calibration; see `calibration.fit_best`."""
    calibrated = isinstance(model, Calibrated)
    sigmoid = model.sigmoid if calibrated else Sigmoid(1.0, 0.0)
    estimator = model.model if calibrated else model
    learned = SCORERS[classifier][0](estimator) | {"sigmoid": [sigmoid.slope, sigmoid.offset]}
    return {name: np.asarray(array) for name, array in learned.items()}


def probabilities(classifier: str, arrays: Mapping[str, Array], rows: Array) -> Scores:
    """Return the probabilities that rows (N, length) or (N, length, features) are hallucinated, (N,).

    Raises `KeyError`, `RuntimeError`, `TypeError` or `ValueError` for arrays that `arrays_of` did not give.
    """
    learned = dict(arrays)
    slope, offset = learned.pop("sigmoid").astype(float)
    return Sigmoid(slope, offset).predict(SCORERS[classifier][1](rows, **learned))


def _of_threshold(model: Any) -> Learned:
    return {"low": model.low_, "high": model.high_, "cut": model.threshold_}


def _threshold(rows: Array, *, low: Array, high: Array, cut: Array) -> Scores:
    means = flattened(rows).mean(1, dtype=np.float64)
    scaled: Scores = (means - float(low)) / ((float(high) - float(low)) or 1.0)
    return float(cut) - scaled


def _of_svm(pipeline: Any) -> Learned:
    machine = pipeline[-1]
    return {
        "mean": pipeline[-2].mean_,
        "scale": pipeline[-2].scale_,
        "vectors": machine.support_vectors_,
        "weights": machine.dual_coef_[0],
        "offset": machine.intercept_[0],
        "gamma": machine._gamma,  # what gamma="scale" came to has no public name
    }


def _svm(
    rows: Array, *, mean: Array, scale: Array, vectors: Array, weights: Array, offset: Array, gamma: Array
) -> Scores:
    from sklearn.metrics.pairwise import rbf_kernel  # takes long to import, and few detectors need it

    kernel = rbf_kernel(_standardised(rows, mean, scale), vectors, gamma=float(gamma))
    scores: Scores = kernel @ weights + float(offset)
    return scores


def _of_mlp(pipeline: Any) -> Learned:
    network = pipeline[-1]
    (inner, outer), (inner_bias, outer_bias) = network.coefs_, network.intercepts_
    layers = {"inner": inner, "inner_bias": inner_bias, "outer": outer[:, 0], "outer_bias": outer_bias[0]}
    return {"mean": pipeline[-2].mean_, "scale": pipeline[-2].scale_, **layers}


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
    """Return probabilities, as `MLPClassifier` gives them: these are calibrated, and not log odds."""
    hidden = np.maximum(_standardised(rows, mean, scale) @ inner + inner_bias, 0)
    scores: Scores = expit(hidden @ outer + float(outer_bias))
    return scores


def _of_forest(pipeline: Any) -> Learned:
    trees = [tree.tree_ for tree in pipeline[-1].estimators_]
    first = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]

    def children(which: str) -> Array:
        pairs = zip((getattr(tree, which) for tree in trees), first, strict=True)
        return np.concatenate([np.where(child < 0, -1, child + start) for child, start in pairs])

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
    """Return the mean over the trees of the share of hallucinated training rows in each row's leaf."""
    flat = flattened(rows).astype(np.float32)
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


def _of_lstm(model: Any) -> Learned:
    return {"mean": model.mean_, "scale": model.scale_, **model.weights_}


def _lstm(rows: Array, *, mean: Array, scale: Array, **weights: Array) -> Scores:
    sequences = rows.reshape(*rows.shape[:2], -1)
    return recurrent_logits(weights, ((sequences - mean) / scale).astype(np.float32))


def _standardised(rows: Array, mean: Array, scale: Array) -> Array:
    flat = flattened(rows)
    if mean.shape != flat.shape[1:] or scale.shape != mean.shape or not (scale > 0).all():
        raise ValueError(f"mean and scale are not those of {flat.shape[1]} columns")
    return (flat - mean) / scale


SCORERS: dict[str, tuple[Callable[[Any], Learned], Callable[..., Scores]]] = {
    "threshold": (_of_threshold, _threshold),
    "svm": (_of_svm, _svm),
    "mlp": (_of_mlp, _mlp),
    "forest": (_of_forest, _forest),
    "lstm": (_of_lstm, _lstm),
}
"""What gives the arrays of a fitted estimator of `registry.CLASSIFIERS`, and what scores rows by them, its
keyword arguments: scores (rows,) that rise with the evidence."""
