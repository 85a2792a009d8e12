"""What the paper prints (arXiv 2411.03920), in percent but for sentences a second."""

from __future__ import annotations

from typing import NamedTuple


class InDistribution(NamedTuple):
    """Table 2: held-out pairs of the data learned from; sentences a second on the paper's machine."""

    system: str
    auroc: float
    auprc: float
    sentences_a_second: float


class Labelling(NamedTuple):
    """Table 4: labels by a model of 70B parameters, against people's."""

    prompt: str
    accuracy: float
    kappa: float


MILLIONS = {"deberta-v3-large": 435, "xlm-roberta-large": 560}
"""Parameters of the encoders, embeddings included."""
LABELLED, PAIRS = 2696, 58
"""Sentences of contexts that people labelled, and pairs of a sentence and a context that they belong to."""

IN_DISTRIBUTION = (
    InDistribution("LightGBM", 95.5, 95.4, 2.03),
    InDistribution("deberta-v3-large", 98.2, 98.3, 19.08),
    InDistribution("xlm-roberta-large", 97.1, 97.2, 26.09),
)
LABELLING = (
    Labelling("zero-shot", 98.5, 77.8),
    Labelling("zero-shot with reasoning", 98.3, 78.6),
    Labelling("five-shot", 98.6, 80.5),
    Labelling("five-shot with reasoning", 98.7, 83.6),
)
