"""The classifiers of vectors by name (LRP4RAG, arXiv 2408.15533, Table 2), as scikit-learn estimators.

Each name has candidates (settings -> unfitted estimator); a new one is an entry in `CLASSIFIERS`, and a line
in `scorers.SCORERS`, so that it can be saved. Every candidate takes rows of any shape: the LSTM reads (rows,
steps, features) as they are, and the others flatten them.
"""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from lrp4rag.classifiers.estimators import LSTMClassifier, ThresholdClassifier
from lrp4rag.classifiers.vectors import flattened
from lrp4rag.util.errors import InputError

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
    """Settings and estimators of a classifier; raises `InputError` that lists the known ones."""
    if name not in CLASSIFIERS:
        raise InputError(f"unknown classifier '{name}'; choose from {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]
