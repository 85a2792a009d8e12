"""Other base models that score tokens by a block of features, to compare the networks with: see
`ensemble.Fit` and `ensemble.BaseModel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrp4rag.classifiers.ensemble import Fit, Flags, Numbers, Scores, Table

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


def linear(inputs: Table, flags: Flags, weights: Scores, train: Numbers, held: Numbers, seed: int) -> Fitted:
    """On standardised columns; nothing is held out, since nothing is chosen."""
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=300))
    counts = {"logisticregression__sample_weight": weights[train]}
    return Fitted(estimator.fit(inputs[train], flags[train], **counts))


def trees(inputs: Table, flags: Flags, weights: Scores, train: Numbers, held: Numbers, seed: int) -> Fitted:
    """Histogram gradient boosting, which stops when the rows held out are judged no better."""
    estimator = HistGradientBoostingClassifier(
        max_iter=TREE_COUNT, early_stopping=True, n_iter_no_change=PATIENCE, random_state=seed
    )
    counts = {"sample_weight": weights[train], "sample_weight_val": weights[held]}
    return Fitted(estimator.fit(inputs[train], flags[train], X_val=inputs[held], y_val=flags[held], **counts))


LEARNERS: dict[str, Fit | None] = {NETWORK: None, LINEAR: linear, TREES: trees}
"""By name; None is for the networks of an `Ensemble`."""
