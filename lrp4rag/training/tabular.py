"""Contenders on a few numbers a row: logistic regression, and a support vector machine beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrp4rag.classifiers.calibration import Contender, contenders_of

Contenders = tuple[Contender, ...]
Inputs = NDArray[np.floating]


def logistic(inputs: Inputs, name: str, penalties: Sequence[float] = (1.0,)) -> Contenders:
    """Logistic regression on standardised inputs (rows, columns), one contender for each penalty C."""
    return tuple(
        Contender(
            name=name,
            classifier="logistic",
            settings=f"C={penalty:g}",
            estimator=make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=1000)),
            inputs=inputs,
        )
        for penalty in penalties
    )


def one_number(values: Sequence[float], name: str) -> Contenders:
    """One number a row. The machine is there for numbers that tell most in the middle of their range."""
    inputs = np.array(values, dtype=float)[:, None]
    return (*logistic(inputs, name), *contenders_of("svm", inputs, name))
