"""Which heads and layers ReDeEP sums over, and how it weighs them (arXiv 2410.11414, section 4.1)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from lrp4rag.classifiers.calibration import Contender

HEADS, LAYERS, RATIOS = (1, 4, 16), (1, 3, 8), (0.25, 1.0, 4.0)
"""Numbers of heads and of layers that contend, and weights of the context against that of knowledge."""

Inputs = NDArray[np.floating[Any]]


class Combination(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The `heads` whose scores fall most with the label and the `layers` whose scores rise most, by Pearson's
    correlation; sums of both are brought to deviation 1, and that of the heads counts `ratio` times.

    The first `split` columns are heads. `weights_` (columns,) are zero where a column was not chosen.
    """

    def __init__(self, split: int, heads: int, layers: int, ratio: float) -> None:
        self.split = split
        self.heads = heads
        self.layers = layers
        self.ratio = ratio

    def fit(self, inputs: Inputs, labels: NDArray[np.bool_]) -> Combination:
        self.classes_ = np.array([False, True])
        rises = correlations(inputs, labels)
        heads = np.argsort(rises[: self.split], kind="stable")[: self.heads]
        layers = self.split + np.argsort(-rises[self.split :], kind="stable")[: self.layers]
        self.weights_ = np.zeros(inputs.shape[1])
        self.weights_[heads] = -self.ratio / _deviation(inputs[:, heads].sum(axis=1))
        self.weights_[layers] = 1 / _deviation(inputs[:, layers].sum(axis=1))
        return self

    def decision_function(self, inputs: Inputs) -> NDArray[np.float64]:
        found: NDArray[np.float64] = inputs @ self.weights_
        return found


def correlations(inputs: Inputs, labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pearson's, of each column with the labels; 0 for a constant one."""
    columns = inputs - inputs.mean(axis=0, dtype=np.float64)
    flags = labels - labels.mean()
    scale = np.linalg.norm(columns, axis=0) * np.linalg.norm(flags)
    found: NDArray[np.float64] = flags @ columns / np.where(scale > 0, scale, 1)
    return found


def _deviation(values: NDArray[np.floating[Any]]) -> float:
    return float(values.std(dtype=np.float64)) or 1.0


def contenders_of(means: Inputs, split: int) -> list[Contender]:
    """Of responses' mean scores (rows, columns), of which the first `split` are heads."""
    return [
        Contender(
            name=f"{heads} heads, {layers} layers, {ratio:g} to 1",
            classifier="",
            settings="",
            estimator=Combination(split, heads, layers, ratio),
            inputs=means,
        )
        for heads, layers, ratio in product(HEADS, LAYERS, RATIOS)
    ]
