"""The parts that are stored of a response, by name: a vector names those it needs, a store has folders."""

from __future__ import annotations

import re

from lrp4rag.util.errors import InputError

READING = "reading"
"""What a plain pass tells (`Reading`): likelihoods, hidden states, and the scores of values' alternatives."""
RELEVANCE, SIGNALS, STATES, PROMPT, SENTENCES = "relevance", "signals", "states", "prompt", "sentences"
"""R_response with tokens and offsets; relevance by segment and the rest of `Signals`; hidden states of each
token (`States`); R_prompt; a row for each sentence."""
PARTS = (READING, RELEVANCE, SIGNALS, STATES, PROMPT, SENTENCES)

MATRIX_SHAPE = (64, 16)
"""Response bins and prompt bins that R* is resampled to (LRP4RAG, eq. 9) before it is kept."""
MATRIX = f"matrix-{MATRIX_SHAPE[0]}x{MATRIX_SHAPE[1]}"

_MATRIX = re.compile(r"matrix-([0-9]{1,4})x([0-9]{1,4})")


def part_named(name: str) -> str:
    """The name of a part; raises `InputError` that lists the known ones."""
    if name not in PARTS and not (matrix_shape(name) and min(matrix_shape(name) or ())):
        raise InputError(f"unknown part '{name}'; choose from {', '.join(PARTS)}, {MATRIX}")
    return name


def matrix_shape(part: str) -> tuple[int, int] | None:
    """(L_r, L_p) of a part that is a resampled R*."""
    match = _MATRIX.fullmatch(part)
    return (int(match[1]), int(match[2])) if match else None
