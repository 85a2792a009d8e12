"""`Flatten`: sequences become vectors, so that a classifier of vectors takes any features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class Flatten(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """(rows, steps, features) to (rows, steps times features); (rows, length) stays as it is."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:  # noqa: N803
        validate_data(self, X, allow_nd=True)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:  # noqa: N803
        check_is_fitted(self)
        rows: NDArray[np.floating] = validate_data(self, X, allow_nd=True, reset=False)
        return rows.reshape(len(rows), -1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
