"""Do probabilities hold where another part of the answers is faulty?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.prevalence import at_prevalence, estimated_prevalence
from lrp4rag.training.metrics import Draws, intervals_of, weighted_metrics

PREVALENCES = (0.1, 0.25, 0.5)
TRAINED = 0.5
"""The part of faulty answers where the bundled detector's probabilities hold."""
FEWEST = 500
"""Answers of either class from which calibration is measured."""
SIZE = 2000
"""Answers that a prevalence is estimated from."""
RESAMPLES = 200

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]


def calibration(probabilities: Scores, labels: Flags, groups: NDArray[np.str_]) -> list[dict[str, Any]]:
    """Return expected calibration errors by prevalence, with intervals over `groups`: of the probabilities as
    they are, shifted to the prevalence, and to one that is estimated from `SIZE` answers; none of few
    answers. Answers are weighted so that the prevalence is what it says."""
    if min(labels.sum(), (~labels).sum()) < FEWEST:
        return []
    draws = Draws.of(groups, RESAMPLES)
    rows = []
    for prevalence in PREVALENCES:
        errors = draws.values(partial(_errors, probabilities, labels, prevalence))
        # An error is larger in every resample: "ece" by itself is a name whose interval is centred.
        intervals = {name: intervals_of({"ece": values})["ece"] for name, values in errors.items()}
        rows.append({"prevalence": prevalence, **intervals})
    return rows


def _errors(probabilities: Scores, labels: Flags, prevalence: float, weights: Scores) -> dict[str, Scores]:
    faulty = (weights * labels).sum(1, keepdims=True)
    right = (weights * ~labels).sum(1, keepdims=True)
    even = weights * np.where(labels, prevalence / faulty, (1 - prevalence) / right)
    given = _error(at_prevalence(probabilities, TRAINED, prevalence), labels, even)
    shifted = [_estimated(probabilities, row, seed) for seed, row in enumerate(even)]
    estimated = [_error(one, labels, row[None])[0] for one, row in zip(shifted, even, strict=True)]
    return {
        "as_it_is": _error(probabilities, labels, even),
        "given": given,
        "estimated": np.array(estimated),
    }


def _estimated(probabilities: Scores, weights: Scores, seed: int) -> Scores:
    """Shift probabilities to the prevalence that is estimated from a draw of them."""
    drawn = np.random.default_rng(seed).choice(probabilities, SIZE, p=weights / weights.sum())
    return at_prevalence(probabilities, TRAINED, estimated_prevalence(drawn, TRAINED))


def _error(probabilities: Scores, labels: Flags, weights: Scores) -> Scores:
    return weighted_metrics(labels, probabilities, np.zeros(len(labels), dtype=bool), weights)["ece"]
