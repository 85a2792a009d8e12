"""The rows that slow systems are judged on: all responses of some generators to sources drawn once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.training.rows import Rows

SOURCES = 200
GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat")
SEED = 0


def sample_of(
    rows: Rows, sources: int = SOURCES, generators: Sequence[str] = GENERATORS, seed: int = SEED
) -> NDArray[np.intp]:
    """Their numbers; of generators that the rows have none of, all others' count. Fewer sources are some of
    more."""
    wanted = np.isin(rows.generators, generators)
    if not wanted.any():
        wanted[:] = True
    order = np.random.default_rng(seed).permutation(np.unique(rows.groups[wanted]))
    return np.flatnonzero(wanted & np.isin(rows.groups, order[:sources]))
