"""Features: fixed-length vectors made of relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.lrp.resample import MODES, Mode, resample

# Raised whenever a feature changes its values: detectors trained on others are then refused.
FEATURE_VERSION = 1


def _prompt(relevance: Relevance) -> Array:
    if relevance.prompt is None:
        raise InputError("the feature 'prompt' needs relevance with R_prompt")
    return relevance.prompt


VECTORS: dict[str, Callable[[Relevance], Array]] = {
    "total": lambda relevance: relevance.total,
    "response": lambda relevance: relevance.response,
    "prompt": _prompt,
}
"""What can be resampled: R_response and R_prompt (LRP4RAG, section 4.3), and n times R_response."""


@dataclass(frozen=True, slots=True)
class Features:
    """`vector` resampled to `length` by `mode` (LRP4RAG eqs. 7-9); the paper's best SVM has 220."""

    vector: str = "total"
    length: int = 220
    mode: Mode = "interpolate"

    def __post_init__(self) -> None:
        if self.vector not in VECTORS:
            raise InputError(f"unknown feature '{self.vector}'; choose from {', '.join(VECTORS)}")
        if self.mode not in MODES:
            raise InputError(f"unknown resampling '{self.mode}'; choose from {', '.join(MODES)}")
        if not 1 <= self.length <= 10_000:
            raise InputError(f"the resampling length must be 1 to 10000, got {self.length}")

    def __call__(self, relevances: Sequence[Relevance]) -> NDArray[np.float64]:
        """(rows, length), in logits."""
        return self.resampled([VECTORS[self.vector](relevance) for relevance in relevances])

    def resampled(self, vectors: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
        """(rows, length) of vectors of any length."""
        return np.stack([resample(vector, self.length, self.mode) for vector in vectors])
