"""What blocks of features add to hidden states: to telling responses, and to ranking minimal pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import BlockEvidence
from lrp4rag.training.metrics import RESAMPLES, UNDEFINED, compare, outcome_metrics, ratios
from lrp4rag.training.pair_evidence import Twin, ranked_twice
from lrp4rag.training.validation import Outcome

BASE = "around"
LADDER: dict[str, tuple[str, ...]] = {
    "hidden states": (BASE,),
    "hidden states, likelihoods": (BASE, "likelihoods"),
    "hidden states, alignment": (BASE, "alignment"),
    "hidden states, claims": (BASE, "claims"),
    "all but hidden states": ("plain",),
    "all": (BASE, "plain"),
}
"""Blocks of detectors that read less, by what they are called; the first is what others are compared with."""


def block_evidence(
    outcomes: Mapping[str, Outcome],
    shown: NDArray[np.intp],
    labels: NDArray[np.bool_],
    groups: NDArray[np.str_],
    twins: Sequence[Twin],
    *,
    resamples: int = RESAMPLES,
) -> Iterator[BlockEvidence]:
    """Of outcomes over all rows, by the names of `LADDER`: AUROC is that of the rows `shown`, `twins` are of
    all rows, and harmless ones do not count. Differences are paired."""
    faulty = [twin for twin in twins if not twin.harmless]
    made = np.array([twin.row for twin in faulty], dtype=np.intp)
    ranks = {name: ranked_twice(faulty, one.probabilities[0]) for name, one in outcomes.items()}
    twos = np.full(len(faulty), 2)
    parts = {name: one.select(shown) for name, one in outcomes.items()}
    first, rows = next(iter(outcomes), ""), (labels[shown], groups[shown])
    for name, part in parts.items():
        pairs = {"ranked": (ranks[name], twos), "added": (ranks[name] - ranks[first], twos)}
        found = ratios(pairs, groups[made], resamples=resamples) if faulty else {}
        yield BlockEvidence(
            blocks=name,
            auroc=outcome_metrics(part, *rows, resamples=resamples)["auroc"],
            auroc_added=compare(part, parts[first], *rows, resamples=resamples)["auroc"],
            ranked=found.get("ranked", UNDEFINED),
            ranked_added=found.get("added", UNDEFINED),
        )
