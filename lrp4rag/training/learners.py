"""Other base models that score tokens by a block of features, to compare the networks with: see
`ensemble.Fit` and `ensemble.BaseModel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrp4rag.classifiers.ensemble import Fit, Flags, Scores, Table

NETWORK, LINEAR, TREES = "networks", "logistic regression", "boosted trees"
PENALTY = 0.01
TREE_COUNT, PATIENCE = 200, 5


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted estimator of scikit-learn."""

    estimator: Any

    def log_odds(self, inputs: Table) -> Scores:
        found: Scores = self.estimator.decision_function(np.asarray(inputs, dtype=np.float32))
        return found


def linear(inputs: Table, flags: Flags, train: NDArray[np.intp], held: NDArray[np.intp], seed: int) -> Fitted:
    """On standardised columns; nothing is held out, since nothing is chosen."""
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=300))
    return Fitted(estimator.fit(inputs[train], flags[train]))


def trees(inputs: Table, flags: Flags, train: NDArray[np.intp], held: NDArray[np.intp], seed: int) -> Fitted:
    """Histogram gradient boosting, which stops when the rows held out are judged no better."""
    estimator = HistGradientBoostingClassifier(
        max_iter=TREE_COUNT, early_stopping=True, n_iter_no_change=PATIENCE, random_state=seed
    )
    return Fitted(estimator.fit(inputs[train], flags[train], X_val=inputs[held], y_val=flags[held]))


LEARNERS: dict[str, Fit | None] = {NETWORK: None, LINEAR: linear, TREES: trees}
"""By name; None is for the networks of an `Ensemble`."""
