"""Which chunks of the context a claim is read with: as many of the most similar as there is room for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BUDGET = 512  # tokens that the cross-encoder reads
SPECIAL = 4  # tokens between and around the two texts, at most


def retrieved(
    similarity: NDArray[np.floating], lengths: NDArray[np.intp], claim: int, budget: int = BUDGET
) -> NDArray[np.intp]:
    """Numbers of the k chunks most similar to a claim of `claim` tokens, in the order of the context, (k,).

    `similarity` (C,) is the chunks' to the claim, `lengths` (C,) are theirs in tokens. k is as large as
    fits the budget together with the claim, and at least 1.
    """
    order = np.argsort(-similarity, kind="stable")
    fitting = int((claim + SPECIAL + np.cumsum(lengths[order]) <= budget).sum())
    return np.sort(order[: max(fitting, 1)])
