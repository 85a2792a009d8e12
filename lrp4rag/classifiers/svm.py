"""The paper's support vector machine (LRP4RAG, section 4.4): RBF kernel on standardised features."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def svm() -> Any:
    return make_pipeline(StandardScaler(), SVC(kernel="rbf", C=1.0, gamma="scale"))
