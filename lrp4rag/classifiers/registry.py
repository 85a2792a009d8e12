"""The classifiers by name: each gives candidates (settings -> unfitted scikit-learn estimator).

A new one is a function of that kind and a line here. Every candidate takes rows of any shape: the LSTM reads
(rows, steps, features) as they are, and the others flatten them. `fit_calibrated` chooses among the
candidates on the training rows it is given, so that inside cross-validation the choice is made inside the
folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lrp4rag.classifiers.forest import forest
from lrp4rag.classifiers.lstm import lstm
from lrp4rag.classifiers.mlp import mlp
from lrp4rag.classifiers.svm import svm
from lrp4rag.classifiers.threshold import threshold
from lrp4rag.errors import InputError

CLASSIFIERS: dict[str, Callable[[], dict[str, Any]]] = {
    "threshold": threshold,
    "svm": svm,
    "mlp": mlp,
    "forest": forest,
    "lstm": lstm,
}


def candidates_of(name: str) -> dict[str, Any]:
    """Settings and estimators of a classifier; raises `InputError` that lists the known ones."""
    if name not in CLASSIFIERS:
        raise InputError(f"unknown classifier '{name}'; choose from {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]()
