"""Turn a classifier's scores into probabilities (Platt's sigmoid), without leaking a source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedGroupKFold

from lrp4rag.classifiers.registry import classifier_named
from lrp4rag.errors import InputError

CALIBRATION_FOLDS = 5


def grouped_folds(
    labels: NDArray[np.bool_], groups: NDArray[np.str_], folds: int, seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Train and test rows of each fold: stratified by label, no group on both sides.

    Raises `InputError` where either class has fewer groups than folds.
    """
    for label, name in ((True, "hallucinated"), (False, "faithful")):
        count = len(set(groups[labels == label]))
        if count < folds:
            raise InputError(
                f"{folds} folds need at least {folds} sources with {name} responses, and there are {count}"
            )
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(labels, labels, groups))


def fit_calibrated(
    classifier: str, vectors: NDArray[np.float64], labels: NDArray[np.bool_], groups: NDArray[np.str_]
) -> Any:
    """The classifier fitted on all rows, its sigmoid on scores from folds it was not fitted on."""
    estimator = classifier_named(classifier)
    folds = grouped_folds(labels, groups, CALIBRATION_FOLDS, seed=0)
    model = CalibratedClassifierCV(estimator, ensemble=False, cv=folds)
    return model.fit(vectors, labels)
