"""How long the claims of Grounded in Context are, and how well it tells them by their length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from experiments.breakdown.stored import StoredRows
from experiments.systems.grounded import CLAIM_OVERLAP, CLAIM_TOKENS, claims_fact
from experiments.systems.grounded_chunks import Chunker, Starts
from experiments.systems.scoring import split
from lrp4rag.classifiers.card import Metrics
from lrp4rag.reader.encoding import Offsets, tokens_in
from lrp4rag.training.metrics import token_intervals

SYSTEM, LENGTH = "grounded-in-context", "the claim's length"
EDGES = (1, 16, 31, 46, CLAIM_TOKENS + 1)
"""Of the groups, in tokens of the embedder."""


@dataclass(frozen=True, slots=True)
class Group:
    """Claims of `shortest` to `longest` tokens: how many, how many an annotated span touches, and how well
    their score and their length tell those."""

    shortest: int
    longest: int
    claims: int
    annotated: int
    systems: dict[str, Metrics]


@dataclass(frozen=True, slots=True)
class Claims:
    """All of the responses; `lengths` are counts by tens of tokens, of faithful and of annotated claims."""

    count: int
    mean: float
    median: float
    longest: int
    lengths: dict[str, tuple[int, ...]]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Claim:
    tokens: int
    score: float
    annotated: bool
    source: str


def claims_of(rows: StoredRows, offsets: Sequence[Offsets], starts: Starts, resamples: int) -> Claims:
    """Cut as the system cuts them. A claim's score is the highest of its tokens, which are stored; where
    claims overlap, a token has the higher score of both.

    Raises `ValueError` without scores of tokens, or with those of other tokens.
    """
    found = _scored(rows, offsets, starts)
    lengths = np.array([one.tokens for one in found])
    flags = np.array([one.annotated for one in found])
    scores = np.array([one.score for one in found])
    sources = np.array([one.source for one in found])
    groups = []
    for low, high in pairwise(EDGES):
        own = (lengths >= low) & ((lengths < high) | (high == EDGES[-1]))
        if len(set(flags[own].tolist())) < 2:
            continue
        systems = {SYSTEM: scores[own], LENGTH: lengths[own].astype(float)}
        groups.append(
            Group(
                low,
                int(lengths[own].max()),
                int(own.sum()),
                int(flags[own].sum()),
                {
                    name: token_intervals(flags[own], values, values > np.inf, sources[own], resamples)
                    for name, values in systems.items()
                },
            )
        )
    return Claims(
        len(found),
        fmean(lengths.tolist()),
        float(median(lengths.tolist())),
        int(lengths.max()),
        {
            name: _by_tens(lengths[flags == which])
            for name, which in (("faithful", False), ("annotated", True))
        },
        tuple(groups),
    )


def _scored(rows: StoredRows, offsets: Sequence[Offsets], starts: Starts) -> list[_Claim]:
    every = rows.marking(SYSTEM, sum(map(len, offsets))).scores
    chunker, found = Chunker(starts, CLAIM_TOKENS, CLAIM_OVERLAP), []
    for example, own, scores in zip(rows.examples, offsets, split(every, offsets), strict=True):
        text = example.response or ""
        spans = [(label.start, label.end) for label in example.labels or ()]
        for piece in chunker(text):
            words = text[piece[0] : piece[1]]
            inside = tokens_in(own, [piece])
            if claims_fact(words) and inside.any():
                flag = bool(tokens_in([piece], spans)[0])
                score = float(scores[inside].max())
                found.append(_Claim(len(starts(words)), score, flag, example.source))
    return found


def _by_tens(lengths: NDArray[np.intp]) -> tuple[int, ...]:
    counts = np.bincount(np.minimum((lengths - 1) // 10, CLAIM_TOKENS // 10), minlength=CLAIM_TOKENS // 10)
    return tuple(int(one) for one in counts)
