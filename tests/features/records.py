"""Records of plain passes made by hand, of 4 prompt tokens: template, question, passages 1 and 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lrp4rag.features.record import Record
from tests.classifiers.samples import relevance_of


def random_record(length: int = 30, seed: int = 0, text: str | None = None, **signals: Any) -> Record:
    """Random likelihoods and states of 6 features; `signals` replace the first."""
    draw = np.random.default_rng(seed)
    arrays = {
        "logprob": -draw.random(length),
        "entropy": draw.random(length),
        "rank": draw.integers(0, 100, length),
        "best": draw.normal(size=length),
        "best_in_passages": draw.normal(size=length),
        "mass": draw.random(length),
    }
    relevance = relevance_of(np.ones(length), text=text)
    states = {"around": draw.normal(size=(1, length + 1, 6)).astype(np.float32)}
    return Record(relevance.encoded, relevance.reader, arrays | signals, states)


def without_tokens(record: Record) -> Record:
    """The same record of an empty response."""
    return replace(record, encoded=replace(record.encoded, response_ids=(), response_offsets=()))
