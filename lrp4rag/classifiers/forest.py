"""A random forest (LRP4RAG, arXiv 2408.15533, Table 2)."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from lrp4rag.classifiers.flatten import Flatten

TREES, LEAVES = 200, (5, 20)


def forest() -> dict[str, Any]:
    """One candidate for each smallest number of rows in a leaf; the paper names none."""
    return {
        f"leaf={rows}": make_pipeline(
            Flatten(), RandomForestClassifier(TREES, min_samples_leaf=rows, random_state=0)
        )
        for rows in LEAVES
    }
