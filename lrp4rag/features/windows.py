"""Means over neighbouring tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

TOKEN_WINDOW = 17
"""Tokens, about a clause: single tokens are noisy, and what is made up is rarely one."""


def smoothed(values: ArrayLike, window: int = TOKEN_WINDOW) -> NDArray[np.float64]:
    """The mean of each token's value and its neighbours', fewer at the ends, over the last axis."""
    given = np.asarray(values)
    sums = np.cumsum(given, axis=-1, dtype=np.float64)
    sums = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
    positions, length = np.arange(given.shape[-1]), given.shape[-1]
    first = np.maximum(positions - window // 2, 0)
    last = np.minimum(positions + window // 2 + 1, length)
    means: NDArray[np.float64] = (sums[..., last] - sums[..., first]) / (last - first)
    return means
