"""Features of the whole response, without judging its tokens first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.experiments.baselines.tabular import Contenders, logistic
from lrp4rag.features.response import response_features

if TYPE_CHECKING:
    from lrp4rag.experiments.rows import Rows

# Poolings of one feature say nearly the same.
PENALTIES = (1e-3, 1e-2, 1e-1)


def pooled_features(rows: Rows) -> Contenders:
    """Logistic regression on every token feature, pooled over the response in every way."""
    inputs = np.array([list(response_features(record).values()) for record in rows.records()])
    return logistic(inputs, "pooled", PENALTIES)
