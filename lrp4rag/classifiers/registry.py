"""The classifiers of vectors by name (LRP4RAG, arXiv 2408.15533, Table 2), as scikit-learn estimators.

Each name gives candidates (settings -> unfitted estimator); a new one is a function of that kind, a line in
`CLASSIFIERS`, and a line in `scorers.SCORERS`, so that it can be saved. Every candidate takes rows of any
shape: the LSTM reads (rows, steps, features) as they are, and the others flatten them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lrp4rag.classifiers.estimators import Flatten, LSTMClassifier, ThresholdClassifier
from lrp4rag.errors import InputError

# The paper names neither sizes nor penalties.
SVM_PENALTIES = (0.1, 0.3, 1.0, 3.0)
HIDDEN, MLP_PENALTIES = 64, (0.1, 1.0, 10.0)
TREES, LEAVES = 200, (5, 20)
TRIM = 0.01

# The MLP's training ends where ten epochs lower the training loss by less than this. It cannot go on for
# ever, since the loss has only so far to fall; and scikit-learn's own early stopping would split sources.
TOLERANCE, EPOCHS = 0.01, 2000


def threshold() -> dict[str, Any]:
    """One candidate; the paper does not say how much it trims."""
    return {f"trim={TRIM:g}": ThresholdClassifier(TRIM)}


def svm() -> dict[str, Any]:
    """The paper's support vector machine (section 4.4), one candidate for each penalty C."""
    return {
        f"C={penalty:g}": _standardised(SVC(kernel="rbf", C=penalty, gamma="scale"))
        for penalty in SVM_PENALTIES
    }


def mlp() -> dict[str, Any]:
    """A multilayer perceptron, one candidate for each penalty alpha on the weights."""
    return {
        f"hidden={HIDDEN}, alpha={alpha:g}": _standardised(
            MLPClassifier((HIDDEN,), alpha=alpha, tol=TOLERANCE, max_iter=EPOCHS, random_state=0)
        )
        for alpha in MLP_PENALTIES
    }


def forest() -> dict[str, Any]:
    """A random forest, one candidate for each smallest number of rows in a leaf."""
    return {
        f"leaf={rows}": make_pipeline(
            Flatten(), RandomForestClassifier(TREES, min_samples_leaf=rows, random_state=0)
        )
        for rows in LEAVES
    }


def lstm() -> dict[str, Any]:
    """The paper's LSTM; its number of epochs is chosen while it is fitted."""
    return {"2 x 256": LSTMClassifier()}


def _standardised(estimator: Any) -> Pipeline:
    return make_pipeline(Flatten(), StandardScaler(), estimator)


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
