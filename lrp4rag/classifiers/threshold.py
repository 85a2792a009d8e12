"""The paper's threshold (LRP4RAG, arXiv 2408.15533, Tables 1 and 5): mean relevance below it is too low."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from lrp4rag.classifiers.binary import BinaryClassifier

TRIMS = (0.01,)


class ThresholdClassifier(BinaryClassifier):
    """A row belongs to the second class (hallucinated) where its mean, in logits, is low.

    As in the paper, means are scaled to (0, 1) without the extremes, and a threshold is swept over that
    range: `threshold_` is the one with the best accuracy on the training rows, the middle one of several.
    The extremes are the training rows below the quantile `trim` and above 1 - `trim`, which become 0 and
    1 (`low_` and `high_`, in logits). The direction is fixed and not learnt; only a calibration after it
    turns it round, where training rows speak clearly against it.
    """

    def __init__(self, trim: float = 0.01, steps: int = 100) -> None:
        self.trim = trim
        self.steps = steps

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        if not 0 <= self.trim < 0.5:
            raise ValueError(f"trim must be at least 0 and below 0.5, got {self.trim}")
        rows, y = validate_data(self, X, y, allow_nd=True)
        positive = self._learn_classes(y)
        means = _means(rows)
        self.low_, self.high_ = map(float, np.quantile(means, [self.trim, 1 - self.trim]))
        swept = np.linspace(0, 1, self.steps + 1)
        accuracy = ((self._scaled(means) < swept[:, None]) == positive).mean(1)
        best = np.flatnonzero(accuracy == accuracy.max())
        self.threshold_ = float(swept[best[len(best) // 2]])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """How far each mean is below the threshold, (rows,), on the scale of (0, 1)."""
        check_is_fitted(self)
        rows = validate_data(self, X, allow_nd=True, reset=False)
        return self.threshold_ - self._scaled(_means(rows))

    def _scaled(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        # Not clipped: beyond the extremes decisions are the same, and ranks remain.
        return (means - self.low_) / ((self.high_ - self.low_) or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the direction is known beforehand
        return tags


def threshold() -> dict[str, Any]:
    """One candidate; the paper does not say how much it trims."""
    return {f"trim={trim:g}": ThresholdClassifier(trim) for trim in TRIMS}


def _means(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = rows.reshape(len(rows), -1).mean(1, dtype=np.float64)
    return means
