"""A multilayer perceptron (LRP4RAG, arXiv 2408.15533, Table 2) on standardised features."""

from __future__ import annotations

from typing import Any

from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrp4rag.classifiers.flatten import Flatten

HIDDEN, PENALTIES = 64, (0.1, 1.0, 10.0)

# Training ends where ten epochs lower the training loss by less than this. It cannot go on for ever, since
# the loss has only so far to fall; and scikit-learn's own early stopping would split sources.
TOLERANCE, EPOCHS = 0.01, 2000


def mlp() -> dict[str, Any]:
    """One candidate for each penalty alpha on the weights; the paper names neither size nor penalty."""
    return {
        f"hidden={HIDDEN}, alpha={alpha:g}": make_pipeline(
            Flatten(),
            StandardScaler(),
            MLPClassifier((HIDDEN,), alpha=alpha, tol=TOLERANCE, max_iter=EPOCHS, random_state=0),
        )
        for alpha in PENALTIES
    }
