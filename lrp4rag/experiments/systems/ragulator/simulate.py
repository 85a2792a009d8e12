"""Sentences out of context, made without labels: read beside another source's passages (arXiv 2411.03920).

Sources are taken in couples that lend each other their passages. Whatever is learned from a couple knows both
of its sources and no other, so that folds which split no couple leak nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.sentences import sentences_of

SENTENCES = 4  # drawn of each response, at most


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Sentences of a response: their numbers `own` (at most `SENTENCES`), and `elsewhere`, a response that is
    made of them, to the question of another source of its `couple`."""

    couple: str
    own: NDArray[np.intp]
    elsewhere: Example


def simulated(examples: Sequence[Example], seed: int) -> list[Simulated]:
    """One of each response. Raises `InputError` unless there are two sources."""
    context = {example.source: example for example in examples}
    couple_of = {source: couple for couple in couples(context, seed) for source in couple}
    generator = np.random.default_rng(seed)
    made = []
    for example in examples:
        couple = couple_of[example.source]
        lender = couple[(couple.index(example.source) + 1) % len(couple)]
        texts = sentences_of(example.response)
        own = np.sort(generator.permutation(len(texts))[:SENTENCES])
        elsewhere = context[lender].with_response("\n".join(texts[k] for k in own))
        made.append(Simulated(" and ".join(couple), own, elsewhere))
    return made


def couples(sources: Iterable[str], seed: int) -> list[tuple[str, ...]]:
    """Distinct sources drawn two by two; three of them go together where their number is odd.

    Raises `InputError` unless there are two.
    """
    order = np.random.default_rng(seed).permutation(sorted(sources))
    if len(order) < 2:
        raise InputError("sentences out of context need the passages of another source, and there is none")
    return [tuple(part.tolist()) for part in np.array_split(order, len(order) // 2)]
