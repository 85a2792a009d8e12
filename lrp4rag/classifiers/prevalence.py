"""Prevalence: how many responses are hallucinated where a detector is used, and what that does to
probabilities.

Evidence multiplies the odds, whatever they were: at another prevalence than in training, all log odds shift
by one number (Saerens, Latinne and Decaestecker, Neural Computation 14, 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from lrp4rag.errors import InputError

Scores = NDArray[np.float64]

FEWEST = 20
"""Responses from which a prevalence is estimated."""
LOWEST = 0.001
_ROUNDS, _CLOSE = 1000, 1e-7


def check_prevalence(prevalence: float) -> float:
    """The same; raises `InputError` for what is no part of responses that can be hallucinated."""
    if not LOWEST <= prevalence <= 1 - LOWEST:
        raise InputError(
            f"a prevalence is from {LOWEST} to {1 - LOWEST}, got {prevalence:g}", field="prevalence"
        )
    return float(prevalence)


def at_prevalence(probabilities: ArrayLike, trained: float, prevalence: float) -> Scores:
    """Probabilities (rows,) that hold where `prevalence` of responses are hallucinated, of those that hold
    where `trained` are."""
    given = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-12, 1 - 1e-12)
    shifted: Scores = expit(logit(given) + logit(prevalence) - logit(trained))
    return shifted


def estimated_prevalence(probabilities: ArrayLike, trained: float) -> float:
    """The prevalence under which unlabelled responses with these probabilities (rows,) are most likely, by
    expectation maximisation; raises `InputError` for fewer than `FEWEST`."""
    given = np.asarray(probabilities, dtype=np.float64)
    if len(given) < FEWEST:
        raise InputError(
            f"a prevalence is estimated from {FEWEST} responses or more, and there are {len(given)}; give it "
            "as a number",
            field="prevalence",
        )
    prevalence = trained
    for _ in range(_ROUNDS):
        found = float(np.clip(at_prevalence(given, trained, prevalence).mean(), LOWEST, 1 - LOWEST))
        if abs(found - prevalence) < _CLOSE:
            break
        prevalence = found
    return found
