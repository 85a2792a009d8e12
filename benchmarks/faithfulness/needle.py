"""(a) Needle: is the planted passage found, and in it the answer?"""

from __future__ import annotations

import numpy as np

from benchmarks.faithfulness.methods import Array, Attributor
from benchmarks.faithfulness.sample import Mask, Sample

TOP = 0.1


def measure_needle(
    sample: Sample, attributor: Attributor, methods: list[str]
) -> dict[str, dict[str, object]]:
    """Mass, pointing and recall of each method, for the mean of the answer's logits."""
    weights = sample.answer_mean()
    return {
        name: dict(scores(sample, attributor.relevance(name, sample.encoded, weights))) for name in methods
    }


def scores(sample: Sample, relevance: Array) -> dict[str, float]:
    """Everything among the passages only: some methods leave out the rest by construction."""
    (planted,) = sample.case.planted
    passages = [sample.passage(k) for k in range(sample.encoded.passages)]
    return {
        "mass": mass(relevance, passages[planted], sample.content),
        "pointing": pointing([float(relevance[passage].sum()) for passage in passages], planted),
        "recall": top_recall(relevance, sample.gold, sample.content),
    }


def mass(relevance: Array, inside: Mask, among: Mask) -> float:
    """Share of the positive relevance of `among` that lies `inside` (Arras et al. 2022, CLEVR-XAI)."""
    positive = np.maximum(relevance, 0)
    total = float(positive[among].sum())
    return float(positive[inside].sum()) / total if total else 0.0


def pointing(by_passage: list[float], planted: int) -> float:
    """1 where the planted passage has the largest summed relevance; ties share the point."""
    best = np.flatnonzero(np.isclose(by_passage, max(by_passage), rtol=1e-9, atol=0))
    return float(planted in best) / len(best)


def top_recall(relevance: Array, gold: Mask, among: Mask, top: float = TOP) -> float:
    """Share of the gold tokens in the top tenth (rounded up) of `among`, expected over orders of ties."""
    values, is_gold = relevance[among], gold[among]
    places = int(np.ceil(top * len(values)))
    threshold = np.sort(values)[::-1][places - 1]
    above, level = values > threshold, values == threshold
    chance = (places - above.sum()) / level.sum()
    return float((is_gold & above).sum() + chance * (is_gold & level).sum()) / int(is_gold.sum())
