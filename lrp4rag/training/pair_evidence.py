"""How well minimal pairs of sources that were held out are told apart, and what prevalence does to
calibration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import PairEvidence
from lrp4rag.classifiers.prevalence import at_prevalence, estimated_prevalence
from lrp4rag.training.metrics import RESAMPLES, Draws, ratios, weighted_metrics

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]

PREVALENCES = (0.1, 0.25, 0.5)


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
    resamples: int = RESAMPLES,
) -> list[PairEvidence]:
    """By set and kind, harmless changes last; a tie is half ranked rightly."""
    every: dict[tuple[str, bool, str], list[Twin]] = defaultdict(list)
    for twin in twins:
        every[twin.set, twin.harmless, twin.kind].append(twin)
    found = []
    for (name, harmless, kind), some in sorted(every.items()):
        made, faithful = np.array([one.row for one in some]), np.array([one.faithful for one in some])
        gap = probabilities[made] - probabilities[faithful]
        doubled = (2 * (gap > 0) + (gap == 0)).astype(np.intp)
        ones = np.ones(len(some), dtype=np.intp)
        figures = ratios(
            {"ranked": (doubled, 2 * ones), "flagged": (flagged[made].astype(np.intp), ones)},
            groups[made],
            resamples=resamples,
        )
        found.append(PairEvidence(set=name, kind=kind, harmless=harmless, pairs=len(some), **figures))
    return found


def calibration(
    labels: Labels, probabilities: Scores, trained: float
) -> dict[str, tuple[float, float, float]]:
    """By prevalence, the expected calibration error (ten bins): of the probabilities as they are, of those at
    the prevalence, and of those at an estimated one. Faithful or hallucinated responses are drawn less
    often."""
    random = np.random.default_rng(0)
    found = {}
    for prevalence in PREVALENCES:
        rows = _drawn(labels, prevalence, random)
        truth, given = labels[rows], probabilities[rows]
        estimate = estimated_prevalence(given, trained)
        ways = (given, at_prevalence(given, trained, prevalence), at_prevalence(given, trained, estimate))
        found[f"{prevalence:.0%}"] = tuple(_error(truth, one) for one in ways)
    return found  # type: ignore[return-value]


def _drawn(labels: Labels, prevalence: float, random: np.random.Generator) -> NDArray[np.intp]:
    """As many rows as there are with that part of hallucinated ones."""
    bad, good = np.flatnonzero(labels), np.flatnonzero(~labels)
    total = min(len(bad) / prevalence, len(good) / (1 - prevalence))
    count = int(total * prevalence), int(total * (1 - prevalence))
    drawn = [
        random.choice(rows, number, replace=False) for rows, number in zip((bad, good), count, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def _error(labels: Labels, probabilities: Scores) -> float:
    draws = Draws.of(np.array(["all"] * len(labels)), 0)
    values = draws.values(
        lambda weights: weighted_metrics(labels, probabilities, probabilities >= 0.5, weights)
    )
    return float(values["ece"][0])
