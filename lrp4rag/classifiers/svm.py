"""The paper's support vector machine (LRP4RAG, section 4.4): RBF kernel on standardised features."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lrp4rag.classifiers.flatten import Flatten

PENALTIES = (0.1, 0.3, 1.0, 3.0)


def svm() -> dict[str, Any]:
    """One candidate for each penalty C; the paper names none."""
    return {
        f"C={penalty:g}": make_pipeline(
            Flatten(), StandardScaler(), SVC(kernel="rbf", C=penalty, gamma="scale")
        )
        for penalty in PENALTIES
    }
