"""Which tokens of a response belong together: neighbours, sentences, the tokens of content words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrp4rag.features.record import Record
from lrp4rag.reader.encoding import tokens_in

TOKEN_WINDOW = 17
"""Tokens, about a clause: single tokens are noisy, and hallucinated spans are rarely one token long."""


def smoothed(
    values: ArrayLike, window: int = TOKEN_WINDOW, until: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Return the mean of each token's value and its neighbours', fewer at the ends, over the last axis; of
    those before the token `until` (t,) of each only, where that is given."""
    array = np.asarray(values)
    sums = np.cumsum(array, axis=-1, dtype=np.float64)
    sums = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
    positions, length = np.arange(array.shape[-1]), array.shape[-1]
    first = np.maximum(positions - window // 2, 0)
    last = np.minimum(positions + window // 2 + 1, length if until is None else until)
    means: NDArray[np.float64] = (sums[..., last] - sums[..., first]) / (last - first)
    return means


def sentence_numbers(record: Record) -> NDArray[np.intp]:
    """Return the number of each token's sentence (t,), -1 between them; a token in two is the first one's."""
    offsets = np.array(record.encoded.response_offsets, dtype=np.intp)  # once, for all sentences
    numbers = np.full(len(offsets), -1)
    for k, span in enumerate(record.encoded.sentences):
        numbers[tokens_in(offsets, [span]) & (numbers < 0)] = k
    return numbers


def ends_of(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return where each token's sentence ends (t,), by the `sentence_numbers`: the number of the first token
    behind it. Tokens between sentences are in none: a response that ends before them has not any."""
    count = len(numbers)
    ends = np.arange(1, count + 1)
    for k in range(count - 2, -1, -1):
        if numbers[k + 1] == numbers[k]:
            ends[k] = ends[k + 1]
    return ends
