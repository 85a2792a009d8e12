"""How well minimal pairs of sources that were held out are told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import PairEvidence
from lrp4rag.training.metrics import RESAMPLES, ratios

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]

EVERY = "every kind"


@dataclass(frozen=True, slots=True)
class Twin:
    """A row that was made of another: its number, that of the faithful one, its kind, and whether it is as
    faithful; `set` names where it comes from."""

    row: int
    faithful: int
    kind: str
    harmless: bool
    set: str


def pair_evidence(
    twins: Sequence[Twin],
    probabilities: Scores,
    flagged: Labels,
    groups: NDArray[np.str_],
    *,
    halves: Mapping[str, Scores] | None = None,
    resamples: int = RESAMPLES,
) -> list[PairEvidence]:
    """By set and kind, harmless changes last; a tie is half ranked rightly.

    `halves` are probabilities by models that learned from half of the sources: under the name of a kind, from
    no fault of it, and under `EVERY` from all.
    """
    every: dict[tuple[str, bool, str], list[Twin]] = defaultdict(list)
    for twin in twins:
        every[twin.set, twin.harmless, twin.kind].append(twin)
    found = []
    for (name, harmless, kind), some in sorted(every.items()):
        made, faithful = np.array([one.row for one in some]), np.array([one.faithful for one in some])
        doubled = ranked_twice(some, probabilities)
        ones = np.ones(len(some), dtype=np.intp)
        pairs = {
            "ranked": (doubled, 2 * ones),
            "flagged": (flagged[made].astype(np.intp), ones),
            "originals": (flagged[faithful].astype(np.intp), ones),
            "more": (flagged[made].astype(np.intp) - flagged[faithful], ones),
        }
        if halves is not None and kind in halves and not harmless:
            pairs["halves"] = (ranked_twice(some, halves[EVERY]), 2 * ones)
            pairs["left_out"] = (ranked_twice(some, halves[kind]), 2 * ones)
        figures = ratios(pairs, groups[made], resamples=resamples)
        found.append(PairEvidence(set=name, kind=kind, harmless=harmless, pairs=len(some), **figures))
    return found


def ranked_twice(twins: Sequence[Twin], probabilities: Scores) -> NDArray[np.intp]:
    """2 where a twin is more probable than its faithful row, 1 for a tie, else 0."""
    made, faithful = np.array([[one.row, one.faithful] for one in twins], dtype=np.intp).reshape(-1, 2).T
    gap = probabilities[made] - probabilities[faithful]
    found: NDArray[np.intp] = (2 * (gap > 0) + (gap == 0)).astype(np.intp)
    return found
