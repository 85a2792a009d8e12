"""Features of the whole response, without judging its tokens first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.features.response import response_features
from lrp4rag.training.tabular import Contenders, logistic

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows

# Poolings of one feature say nearly the same.
PENALTIES = (1e-3, 1e-2, 1e-1)


def pooled_features(rows: Rows) -> Contenders:
    """Logistic regression on every token feature, pooled over the response in every way."""
    found = [response_features(record) for record in rows.records()]
    names = sorted(set.intersection(*(set(one) for one in found)))  # R_prompt may be stored of some only
    return logistic(np.array([[one[name] for name in names] for one in found]), "pooled", PENALTIES)
