"""Features: arrays of one size made of relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.parts import MATRIX, MATRIX_SHAPE, PROMPT, RELEVANCE, SEGMENTS
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.lrp.resampling import MODES, Mode, resample
from lrp4rag.util.errors import InputError

# Raised where a feature is added or comes to mean something else, or where more than a tenth of the values
# change: detectors trained before are then refused.
FEATURE_VERSION = 3

STEPS, BINS = MATRIX_SHAPE


@dataclass(frozen=True, slots=True)
class Vector:
    """Something to resample: one row (length), or several (features, length) with steps in common.

    `words` describe it, and `needs` are the parts of a store that it is made of. `most` is the length it has
    before resampling where that is always the same, and `length` the usual one to resample it to. `rows` is
    how many there are, 0 for a plain vector.
    """

    of: Callable[[Relevance], Array]
    words: str
    needs: tuple[str, ...] = (RELEVANCE,)
    length: int = 220
    most: int = 10_000
    rows: int = 0


def _prompt(relevance: Relevance) -> Array:
    if relevance.prompt is None:
        raise InputError("the feature 'prompt' needs relevance with R_prompt (prompt=True)")
    return relevance.prompt


def _segments(relevance: Relevance) -> Array:
    """Sum R* over the tokens of passages, question and template (segments 2 on, 1 and 0), (3, t)."""
    rows = relevance.by_segment
    if rows is None:
        raise InputError("the feature 'segments' needs relevance by segment (segments=True)")
    return np.stack([rows[2:].sum(0), rows[1], rows[0]])


def _matrix(relevance: Relevance) -> Array:
    """Return a row of each prompt bin, (16, 64)."""
    if relevance.resampled is None or relevance.resampled.shape != MATRIX_SHAPE:
        raise InputError(f"the feature 'matrix' needs resampled R* (resampled={MATRIX_SHAPE})")
    return relevance.resampled.T


VECTORS: dict[str, Vector] = {
    "total": Vector(
        lambda relevance: relevance.total, "relevance of the whole prompt per response token (n x R_response)"
    ),
    "response": Vector(lambda relevance: relevance.response, "R_response"),
    "prompt": Vector(_prompt, "R_prompt", needs=(RELEVANCE, PROMPT)),
    "segments": Vector(
        _segments,
        "relevance of passages, question and template per response token",
        needs=(RELEVANCE, SEGMENTS),
        rows=3,
    ),
    "matrix": Vector(
        _matrix, "R* in bins, along the response", (RELEVANCE, MATRIX), STEPS, most=STEPS, rows=BINS
    ),
    "matrix_t": Vector(
        lambda relevance: _matrix(relevance).T,
        "R* in bins, along the prompt",
        (RELEVANCE, MATRIX),
        BINS,
        most=BINS,
        rows=STEPS,
    ),
}
"""What can be resampled: R_response and R_prompt (LRP4RAG, section 4.3), n times R_response, that sum split
among passages, question and template, and R* read along the response or along the prompt (`matrix_t`)."""


@dataclass(frozen=True, slots=True)
class Features:
    """`vector` resampled to `length` by `mode` (LRP4RAG eqs. 7-9); the paper's best SVM has 220.

    R* was interpolated to `MATRIX_SHAPE` when it was computed; `mode` is what happens to it afterwards.
    """

    vector: str = "total"
    length: int = 220
    mode: Mode = "interpolate"

    def __post_init__(self) -> None:
        if self.vector not in VECTORS:
            raise InputError(f"unknown feature '{self.vector}'; choose from {', '.join(VECTORS)}")
        if self.mode not in MODES:
            raise InputError(f"unknown resampling '{self.mode}'; choose from {', '.join(MODES)}")
        most = VECTORS[self.vector].most
        if not 1 <= self.length <= most:
            raise InputError(
                f"the resampling length of '{self.vector}' must be 1 to {most}, got {self.length}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one response's features: (length,), or (length, features)."""
        rows = VECTORS[self.vector].rows
        return (self.length, rows) if rows else (self.length,)

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that the vector is made of."""
        return VECTORS[self.vector].needs

    def __call__(self, relevances: Sequence[Relevance]) -> NDArray[np.float64]:
        """Return (rows, length), or (rows, length, features) of a vector of several rows, in logits."""
        return self.resampled([VECTORS[self.vector].of(relevance) for relevance in relevances])

    def resampled(self, vectors: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
        """Resample vectors of any length to (rows, length), those of (features, any length) to (rows, length,
        features)."""
        return np.stack(
            [
                resample(vector, self.length if vector.ndim == 1 else (len(vector), self.length), self.mode).T
                for vector in vectors
            ]
        )


def flattened(rows: NDArray[Any]) -> NDArray[Any]:
    """Flatten (rows, ...) to (rows, columns)."""
    return rows.reshape(len(rows), -1)
