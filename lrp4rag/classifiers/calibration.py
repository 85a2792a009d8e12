"""Turn a classifier's scores into probabilities (Platt's sigmoid), without leaking a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

from lrp4rag.classifiers.registry import candidates_of
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


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrated scikit-learn classifier, and which of the candidates it is."""

    model: Any
    settings: str

    def predict(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """The probability of a hallucination, (rows,)."""
        column = list(self.model.classes_).index(True)
        probabilities: NDArray[np.float64] = self.model.predict_proba(vectors)
        return probabilities[:, column]


def fit_calibrated(
    classifier: str, vectors: NDArray[np.float64], labels: NDArray[np.bool_], groups: NDArray[np.str_]
) -> Fitted:
    """Choose the candidate with the best AUROC over inner folds, fit it on all rows, and calibrate it.

    The sigmoid is fitted on scores from folds that the classifier was not fitted on.
    """
    candidates = candidates_of(classifier)
    folds = grouped_folds(labels, groups, CALIBRATION_FOLDS, seed=0)

    def auroc(settings: str) -> float:
        scores = cross_val_predict(
            candidates[settings], vectors, labels, cv=folds, method="decision_function"
        )
        return float(roc_auc_score(labels, scores))

    best = max(candidates, key=auroc)
    model = CalibratedClassifierCV(candidates[best], ensemble=False, cv=folds)
    return Fitted(model.fit(vectors, labels), best)
