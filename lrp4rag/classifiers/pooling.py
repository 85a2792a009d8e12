"""From tokens to the verdict: one score of a response's, or a sentence's, token scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

TOPS = (5, 10, 20, 40)
"""Numbers of tokens that contend: a made-up clause has about ten."""
SENTENCE_TOPS = (1, 3, 6, 12)


def top_mean(scores: Scores, count: int) -> float:
    """The mean of the highest `count` scores, of all where there are fewer; raises `ValueError` for none."""
    if not len(scores):
        raise ValueError("no tokens to pool")
    return float(np.sort(scores)[-count:].mean())


def pooled(scores: Scores, owner: NDArray[np.intp], rows: NDArray[np.intp], count: int) -> Scores:
    """`top_mean` for each of `rows`, of token scores (N,) whose responses are `owner` (N,), which rises."""
    first, last = np.searchsorted(owner, rows), np.searchsorted(owner, rows, side="right")
    return np.array([top_mean(scores[start:end], count) for start, end in zip(first, last, strict=True)])
