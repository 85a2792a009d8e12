"""`NetworkClassifier`: what the estimators with a torch network inside share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lrp4rag.classifiers.binary import BinaryClassifier

if TYPE_CHECKING:
    from torch import nn

    from lrp4rag.classifiers.training import Weights


class NetworkClassifier(BinaryClassifier):
    """A network that gives one logit for each row of inputs, whose last axis is the features.

    `fit` keeps a part of its rows (`validation`, whole groups) to choose the number of epochs on: training
    ends after `patience` epochs without a lower loss there, and the weights of the best epoch are kept.
    Features are standardised over everything else of the rows trained on. Once fitted it holds `weights_`
    (numpy arrays by name) and no torch module.
    """

    gives_probabilities = True
    """Its epoch has the lowest log loss on rows it was not trained on, so nothing calibrates it again."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    validation: float
    random_state: int | None
    weight_decay = 0.0

    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]
    weights_: Weights
    validation_losses_: list[float]

    def _network(self, features: int) -> nn.Module:
        raise NotImplementedError

    def _inputs(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The inputs in the shape that the network takes."""
        return rows

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train; rows of one group (default: each its own) stay on one side of the inner split."""
        from lrp4rag.classifiers.training import Training, train

        array, y = validate_data(self, X, y, allow_nd=True, dtype=[np.float64, np.float32])
        inputs, labels = self._inputs(array), self._learn_classes(y)
        self.shape_in_ = inputs.shape[1:]
        random = check_random_state(self.random_state)
        sources = np.arange(len(labels)) if groups is None else column_or_1d(groups)
        fitted, held_out = split_once(labels, sources, self.validation, random)
        axes = tuple(range(inputs.ndim - 1))
        self.mean_ = inputs[fitted].mean(axes, dtype=np.float64)
        scale = inputs[fitted].std(axes, dtype=np.float64)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        rows = self._standardised(inputs)
        self.weights_, self.validation_losses_ = train(
            lambda: self._network(inputs.shape[-1]),
            rows[fitted],
            labels[fitted],
            (rows[held_out], labels[held_out]),
            Training(
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                max_epochs=self.max_epochs,
                patience=self.patience,
                seed=int(random.randint(2**31 - 1)),
                weight_decay=self.weight_decay,
            ),
        )
        self.n_iter_ = int(np.argmin(self.validation_losses_)) + 1
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The log odds of the second class, (rows,)."""
        from lrp4rag.classifiers.training import logits

        check_is_fitted(self)
        given = validate_data(self, X, allow_nd=True, reset=False, dtype=[np.float64, np.float32])
        inputs = self._inputs(given)
        if inputs.shape[1:] != self.shape_in_:
            raise ValueError(f"rows of shape {inputs.shape[1:]}, fitted on {self.shape_in_}")
        rows = self._standardised(inputs)
        return logits(lambda: self._network(inputs.shape[-1]), self.weights_, rows, 4 * self.batch_size)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def _standardised(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = ((inputs - self.mean_) / self.scale_).astype(np.float32)
        return rows


def split_once(
    labels: NDArray[np.bool_], groups: NDArray[Any], part: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers to train on and to hold out: stratified by label, no group on both sides."""
    if not 0 < part <= 0.5:
        raise ValueError(f"validation must be above 0 and at most 0.5, got {part}")
    smallest = min(len(np.unique(groups[labels == label])) for label in (True, False))
    folds = min(round(1 / part), smallest)
    if folds < 2:
        raise ValueError("a network needs two groups (sources) of each class: one is held out")
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
    fitted, held_out = next(splitter.split(labels, labels, groups))
    return fitted, held_out
