"""`BinaryClassifier`: what our own scikit-learn estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted


class BinaryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Rows of any shape, two classes (the second is the positive one), decided by `decision_function` > 0."""

    classes_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The evidence for the second class, (rows,)."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        check_is_fitted(self)
        classes: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return classes

    def _learn_classes(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Set `classes_`; which rows are of the second. Raises `ValueError` unless there are two."""
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs two classes, and there is one class")
        return np.asarray(codes == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        return tags
