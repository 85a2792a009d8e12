"""The classifiers of vectors by name (LRP4RAG, arXiv 2408.15533, Table 2), as scikit-learn estimators, of
which threshold and LSTM stand here.

Each name has candidates (settings -> unfitted estimator); a new one is an entry in `CLASSIFIERS`, and a line
in `scorers.SCORERS`, so that it can be saved. Every candidate takes rows of any shape: the LSTM reads (rows,
steps, features) as they are, and the others flatten them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from lrp4rag.classifiers.network import Recurrent, Weights, fit_network, recurrent_logits
from lrp4rag.classifiers.vectors import flattened
from lrp4rag.util.errors import InputError


class BinaryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rows of any shape, two classes (the second is the positive one), decided by `decision_function` > 0."""

    classes_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the evidence for the second class, (rows,)."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        check_is_fitted(self)
        classes: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return classes

    def _learn_classes(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Set `classes_`, and return which rows are of the second. Raises `ValueError` unless there are
        two."""
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs two classes, and there is one class")
        return np.asarray(codes == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.classifier_tags.multi_class = False
        return tags


SWEPT = 101
"""How many thresholds are tried."""


class ThresholdClassifier(BinaryClassifier):
    """The paper's threshold (Tables 1 and 5): the second class (hallucinated) where the mean is low.

    As in the paper, means are scaled to (0, 1) without the extremes, and a threshold is swept over that
    range: `threshold_` is the one with the best accuracy on the training rows, the middle one of several.
    The extremes are the training rows below the quantile `trim` and above 1 - `trim`, which become 0 and
    1 (`low_` and `high_`, in logits). The direction is fixed and not learnt; only a calibration after it
    turns it round, where training rows speak clearly against it.
    """

    def __init__(self, trim: float = 0.01) -> None:
        self.trim = trim

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        if not 0 <= self.trim < 0.5:
            raise ValueError(f"trim must be at least 0 and below 0.5, got {self.trim}")
        rows, y = validate_data(self, X, y, allow_nd=True)
        positive = self._learn_classes(y)
        means = flattened(rows).mean(1, dtype=np.float64)
        self.low_, self.high_ = map(float, np.quantile(means, [self.trim, 1 - self.trim]))
        swept = np.linspace(0, 1, SWEPT)
        accuracy = ((self._scaled(means) < swept[:, None]) == positive).mean(1)
        best = np.flatnonzero(accuracy == accuracy.max())
        self.threshold_ = float(swept[best[len(best) // 2]])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return how far each mean is below the threshold, (rows,), on the scale of (0, 1)."""
        check_is_fitted(self)
        rows = validate_data(self, X, allow_nd=True, reset=False)
        return self.threshold_ - self._scaled(flattened(rows).mean(1, dtype=np.float64))

    def _scaled(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        # Not clipped: beyond the extremes decisions are the same, and ranks remain.
        return (means - self.low_) / ((self.high_ - self.low_) or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the direction is known beforehand
        return tags


class LSTMClassifier(BinaryClassifier):
    """The paper's LSTM on sequences (rows, steps, features); (rows, steps) has one feature.

    Size and learning rate are the paper's. `fit` holds out a part of its rows (`validation`, whole groups):
    training ends after `patience` epochs without a lower loss there, with the weights of the best epoch.
    Each feature is standardised over the rows trained on. Once fitted it holds `weights_` (numpy arrays by
    name) and no torch module.
    """

    gives_probabilities = True
    """Its epoch has the lowest log loss on rows it was not trained on, so nothing calibrates it again."""

    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]
    weights_: Weights
    validation_losses_: list[float]

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
        """Train; rows of one group (default: each row is one) stay on one side of the inner split."""
        array, y = validate_data(self, X, y, allow_nd=True, dtype=[np.float64, np.float32])
        inputs, labels = array.reshape(*array.shape[:2], -1), self._learn_classes(y)
        self.shape_in_ = inputs.shape[1:]
        random = check_random_state(self.random_state)
        sources = np.arange(len(labels)) if groups is None else column_or_1d(groups)
        fitted, held_out = split_once(labels, sources, self.validation, random)
        axes = tuple(range(inputs.ndim - 1))
        self.mean_ = inputs[fitted].mean(axes, dtype=np.float64)
        scale = inputs[fitted].std(axes, dtype=np.float64)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        rows = self._standardised(inputs)
        self.weights_, self.validation_losses_ = fit_network(
            lambda: Recurrent(inputs.shape[-1], self.hidden_size, self.layers),
            rows[fitted],
            labels[fitted],
            (rows[held_out], labels[held_out]),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            seed=int(random.randint(2**31 - 1)),
        )
        self.n_iter_ = int(np.argmin(self.validation_losses_)) + 1
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Return the log odds of the second class, (rows,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, allow_nd=True, reset=False, dtype=[np.float64, np.float32])
        inputs = rows.reshape(*rows.shape[:2], -1)
        if inputs.shape[1:] != self.shape_in_:
            raise ValueError(f"rows of shape {inputs.shape[1:]}, fitted on {self.shape_in_}")
        return recurrent_logits(self.weights_, self._standardised(inputs))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        positive = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def _standardised(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = ((inputs - self.mean_) / self.scale_).astype(np.float32)
        return rows


def split_once(
    labels: NDArray[np.bool_], groups: NDArray[Any], share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row numbers to train on and to hold out: stratified by label, no group on both sides."""
    if not 0 < share <= 0.5:
        raise ValueError(f"validation must be above 0 and at most 0.5, got {share}")
    smallest = min(len(np.unique(groups[labels == label])) for label in (True, False))
    folds = min(round(1 / share), smallest)
    if folds < 2:
        raise ValueError("a network needs two groups (sources) of each class: one is held out")
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
    fitted, held_out = next(splitter.split(labels, labels, groups))
    return fitted, held_out


# The paper names neither sizes nor penalties, nor how much the threshold's scale trims.
SVM_PENALTIES = (0.1, 0.3, 1.0, 3.0)
HIDDEN, MLP_PENALTIES = 64, (0.1, 1.0, 10.0)
TREES, LEAVES = 200, (5, 20)
TRIM = 0.01

# The MLP's training ends where ten epochs lower the training loss by less than this. It cannot go on for
# ever, since the loss has only so far to fall; and scikit-learn's own early stopping would split sources.
TOLERANCE, EPOCHS = 0.01, 2000

FLATTEN = FunctionTransformer(flattened)

CLASSIFIERS: dict[str, dict[str, Any]] = {
    "threshold": {f"trim={TRIM:g}": ThresholdClassifier(TRIM)},
    "svm": {
        f"C={penalty:g}": make_pipeline(FLATTEN, StandardScaler(), SVC(C=penalty))
        for penalty in SVM_PENALTIES
    },
    "mlp": {
        f"hidden={HIDDEN}, alpha={alpha:g}": make_pipeline(
            FLATTEN,
            StandardScaler(),
            MLPClassifier((HIDDEN,), alpha=alpha, tol=TOLERANCE, max_iter=EPOCHS, random_state=0),
        )
        for alpha in MLP_PENALTIES
    },
    "forest": {
        f"leaf={rows}": make_pipeline(
            FLATTEN, RandomForestClassifier(TREES, min_samples_leaf=rows, random_state=0)
        )
        for rows in LEAVES
    },
    "lstm": {"2 x 256": LSTMClassifier()},
}
"""The LSTM's number of epochs is chosen while it is fitted."""


def candidates_of(name: str) -> dict[str, Any]:
    """Return settings and estimators of a classifier; raises `InputError` that lists the known ones."""
    if name not in CLASSIFIERS:
        raise InputError(f"unknown classifier '{name}'; choose from {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]
