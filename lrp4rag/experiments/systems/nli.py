"""Entailment models used alone, as AlignScore (arXiv 2305.16739), MiniCheck (arXiv 2404.10774) and HHEM are.

A response is split into sentences and the context into chunks; a sentence is worth its best chunk's support.
The mean of the sentences (AlignScore's) and the least of them (one that is not supported is enough) contend.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lrp4rag.experiments.systems.baseline import SPANS, Facts
from lrp4rag.experiments.systems.encoders.weights import MINILM_PACKAGE
from lrp4rag.experiments.systems.measurement import Measured, Measurement
from lrp4rag.experiments.systems.ragulator.encoder import read_windows
from lrp4rag.experiments.systems.suspicion import NO_PARTS
from lrp4rag.experiments.systems.taught import entailed

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.encoders.entailment import Entailment
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

NAMES = ("mean support of sentences", "least support of a sentence")


def support_of(doubts: np.ndarray) -> np.ndarray:
    """The two numbers, from 1 - the best chunk's support of each sentence (S,)."""
    return np.array([1 - doubts.mean(), 1 - doubts.max()])


def measure(rows: Rows, kit: Kit, model: Entailment) -> list[Measurement]:
    """What RAGulator's encoder measures, read otherwise."""
    found = read_windows(rows, kit, model)
    return [replace(one, numbers=support_of((one.suspicion or NO_PARTS).scores)) for one in found]


FACTS = Facts(
    "Entailment of sentences (HHEM, MiniCheck, AlignScore)",
    "arXiv 2305.16739, 2404.10774",
    "text",
    SPANS,
    "MiniLM (22M), cross-encoder trained in the folds",
    choices=("entailment",),
    modules=(MINILM_PACKAGE,),
)
ENTAILMENT = entailed(
    FACTS, lambda model: Measured(FACTS, partial(measure, model=model), NAMES, alternatives=True, marks=True)
)
