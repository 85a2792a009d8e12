"""The paper's LSTM (LRP4RAG, arXiv 2408.15533, Table 2): two layers on the resampled matrix R*."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lrp4rag.classifiers.binary import BinaryClassifier


class LSTMClassifier(BinaryClassifier):
    """A recurrent network on sequences (rows, steps, features); (rows, steps) has one feature.

    Size and learning rate are the paper's. `fit` keeps a part of its rows (`validation`, whole groups)
    to choose the number of epochs on: training ends after `patience` epochs without a lower loss there, and
    the weights of the best epoch are kept. Features are standardised over the rows and steps trained on.
    Once fitted it holds `weights_` (numpy arrays by name) and no torch module.
    """

    gives_probabilities = True
    """Its epoch has the lowest log loss on rows it was not trained on, so nothing calibrates it again."""

    def __init__(
        self,
        hidden_size: int = 256,
        layers: int = 2,
        learning_rate: float = 5e-4,
        batch_size: int = 64,
        max_epochs: int = 12,
        patience: int = 3,
        validation: float = 0.2,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_size = hidden_size
        self.layers = layers
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train; rows of one group (default: each its own) stay on one side of the inner split."""
        from lrp4rag.classifiers import recurrent

        array, y = validate_data(self, X, y, allow_nd=True, dtype=np.float64)
        sequences, labels = _sequences(array), self._learn_classes(y)
        self.shape_in_ = sequences.shape[1:]
        random = check_random_state(self.random_state)
        sources = np.arange(len(labels)) if groups is None else column_or_1d(groups)
        fitted, held_out = _split(labels, sources, self.validation, random)
        self.mean_ = sequences[fitted].mean((0, 1))
        scale = sequences[fitted].std((0, 1))
        self.scale_ = np.where(scale > 0, scale, 1.0)
        rows = self._standardised(sequences)
        self.weights_, losses = recurrent.train(
            rows[fitted],
            labels[fitted],
            (rows[held_out], labels[held_out]),
            recurrent.Training(
                hidden_size=self.hidden_size,
                layers=self.layers,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                max_epochs=self.max_epochs,
                patience=self.patience,
                seed=int(random.randint(2**31 - 1)),
            ),
        )
        self.validation_losses_ = losses
        self.n_iter_ = int(np.argmin(losses)) + 1
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The log odds of the second class, (rows,)."""
        from lrp4rag.classifiers import recurrent

        check_is_fitted(self)
        sequences = _sequences(validate_data(self, X, allow_nd=True, reset=False, dtype=np.float64))
        if sequences.shape[1:] != self.shape_in_:
            raise ValueError(f"sequences of shape {sequences.shape[1:]}, fitted on {self.shape_in_}")
        return recurrent.logits(self.weights_, self._standardised(sequences))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def _standardised(self, sequences: NDArray[np.float64]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = ((sequences - self.mean_) / self.scale_).astype(np.float32)
        return rows


def lstm() -> dict[str, Any]:
    """One candidate, the paper's; its number of epochs is chosen while it is fitted."""
    return {"2 x 256": LSTMClassifier()}


def _sequences(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return rows.reshape(*rows.shape[:2], -1)


def _split(
    labels: NDArray[np.bool_], groups: NDArray[Any], part: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers to train on and to hold out: stratified by label, no group on both sides."""
    if not 0 < part <= 0.5:
        raise ValueError(f"validation must be above 0 and at most 0.5, got {part}")
    smallest = min(len(np.unique(groups[labels == label])) for label in (True, False))
    folds = min(round(1 / part), smallest)
    if folds < 2:
        raise ValueError("an LSTM needs two groups (sources) of each class: one is held out")
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
    fitted, held_out = next(splitter.split(labels, labels, groups))
    return fitted, held_out
