"""The parts that a store holds of a response, by name: a vector names those it needs, a store has folders."""

from __future__ import annotations

import re
from collections.abc import Collection

from lrp4rag.util.errors import InputError

READING = "reading"
"""The record of a plain pass: likelihoods, hidden states, and the scores of claims' alternatives."""
RELEVANCE, SEGMENTS, PROMPT = "relevance", "segments", "prompt"
"""R_response with tokens and offsets; relevance by segment; R_prompt."""
PARTS = (READING, RELEVANCE, SEGMENTS, PROMPT)

MATRIX_SHAPE = (64, 16)
"""Response bins and prompt bins that R* is resampled to (LRP4RAG, eq. 9) before it is kept."""
MATRIX = f"matrix-{MATRIX_SHAPE[0]}x{MATRIX_SHAPE[1]}"

_MATRIX = re.compile(r"matrix-([0-9]{1,4})x([0-9]{1,4})")


def part_named(name: str, more: Collection[str] = ()) -> str:
    """Return the name of a part: of `PARTS`, a matrix, or of `more`; raises `InputError` for others."""
    names = dict.fromkeys((*PARTS, *more))
    if name not in names and not (matrix_shape(name) and min(matrix_shape(name) or ())):
        raise InputError(f"unknown part '{name}'; choose from {', '.join(names)}, {MATRIX}")
    return name


def matrix_shape(part: str) -> tuple[int, int] | None:
    """Return (L_r, L_p) of a part that is a resampled R*, None of others."""
    match = _MATRIX.fullmatch(part)
    return (int(match[1]), int(match[2])) if match else None
