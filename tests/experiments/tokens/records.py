"""Records made by hand, of 4 prompt tokens: template, question, passages 1 and 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lrp4rag.features.record import Record
from lrp4rag.lrp.relevance import Relevance
from tests.classifiers.samples import relevance_of

LAYERS, HEADS, ORIGINS = 5, 3, 4


def record_of(by_segment: Any, *, prompt: Any = None, **signals: Any) -> Record:
    """`by_segment` is (segments, t); signals that are not given are zero, the logits 10."""
    rows = np.asarray(by_segment, dtype=np.float32)
    length = rows.shape[1]
    line = np.zeros(length, dtype=np.float32)
    names = ("logprob", "entropy", "rank", "logprob_without_passages", "logprob_other_passages")
    arrays: dict[str, Any] = {
        **dict.fromkeys(names, line),
        "logits": line + 10,
        "by_segment": rows,
        "mean_by_segment": np.zeros_like(rows),
        "largest_by_segment": np.zeros_like(rows),
        "cp_by_segment": np.zeros((ORIGINS, length)),
        "shares": np.zeros((LAYERS, ORIGINS, length)),
        "norms": np.zeros((LAYERS, ORIGINS, length)),
        "lookback": np.zeros((LAYERS, HEADS, length)),
    }
    arrays |= {name: np.asarray(value) for name, value in signals.items()}
    relevance = relevance_of(rows.sum(0), by_segment=rows)
    if prompt is not None:
        relevance = replace(relevance, prompt=np.asarray(prompt, dtype=np.float32))
    return Record.of(relevance, signals=arrays)


def with_relevance(record: Record, relevance: Relevance) -> Record:
    """The same record of other relevance, its text and its reader."""
    return replace(record, relevance=relevance, encoded=relevance.encoded, reader=relevance.reader)


def without_tokens(record: Record) -> Record:
    """The same record of an empty response."""
    nothing = np.zeros(0, dtype=np.float32)
    encoded = replace(record.encoded, response_ids=(), response_offsets=())
    return with_relevance(record, replace(record.relevance, response=nothing, encoded=encoded))


def random_states(length: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Of 6 features, after layer 3 of 5."""
    draw = np.random.default_rng(seed)
    whole, passages = draw.normal(size=(2, 1, length, 6)).astype(np.float32)
    return {"layers": np.array([3]), "whole": whole, "passages": passages}


def random_record(length: int = 30, seed: int = 0, by_segment: Any = None, text: str | None = None) -> Record:
    """Everything random, in its range, but relevance where it is given."""
    draw = np.random.default_rng(seed)
    shape = (4, length)
    record = record_of(
        draw.normal(size=shape) if by_segment is None else by_segment,
        prompt=draw.normal(size=4),
        mean_by_segment=draw.normal(size=shape),
        largest_by_segment=draw.normal(size=shape),
        logits=draw.normal(10, 5, length),
        cp_by_segment=draw.normal(size=(ORIGINS, length)),
        shares=draw.normal(size=(LAYERS, ORIGINS, length)),
        norms=draw.random((LAYERS, ORIGINS, length)),
        lookback=draw.random((LAYERS, HEADS, length)),
        logprob=-draw.random(length),
        entropy=draw.random(length),
        rank=draw.integers(0, 100, length),
        logprob_without_passages=-draw.random(length),
        logprob_other_passages=-draw.random(length),
        hidden_mean=draw.normal(size=(LAYERS + 1, 6)),
        hidden_last=draw.normal(size=(LAYERS + 1, 6)),
        part_layers=np.array([3]),
    )
    if text is not None:
        relevance = relevance_of(record.relevance.total, text=text, by_segment=record.relevance.by_segment)
        record = with_relevance(record, relevance)
    return replace(record, states=random_states(length, seed))
