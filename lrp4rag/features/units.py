"""Which tokens of a response belong together: its sentences, and the tokens of content words."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.record import Record
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.sentences import split_sentences


def sentence_numbers(record: Record) -> NDArray[np.intp]:
    """The number of each token's sentence (t,), -1 between them; a token in two is the first one's."""
    offsets = record.encoded.response_offsets
    numbers = np.full(len(offsets), -1)
    for k, span in enumerate(split_sentences(record.encoded.response)):
        inside = tokens_in(offsets, [span])
        numbers[inside & (numbers < 0)] = k
    return numbers


def content_tokens(record: Record) -> NDArray[np.bool_]:
    """Which tokens are of content words (t,): words that are no English stop words. Function words are
    predicted from grammar, whatever the passages say (fragments of SIRG: arXiv 2601.03052)."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    response = record.encoded.response
    words = [
        match.span() for match in re.finditer(r"\w+", response) if match[0].lower() not in ENGLISH_STOP_WORDS
    ]
    inside: NDArray[np.bool_] = tokens_in(record.encoded.response_offsets, words)
    return inside
