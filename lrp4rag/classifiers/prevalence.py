"""Prevalence: how many responses are hallucinated where a detector is used, and what that does to
probabilities.

Evidence multiplies the odds, whatever they were: at another prevalence than in training, all log odds shift
by one number (Saerens, Latinne and Decaestecker, Neural Computation 14, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from lrp4rag.util.errors import InputError

Scores = NDArray[np.float64]

FEWEST = 20
"""Responses from which a prevalence is estimated."""
LOWEST = 0.001
PREVALENCES = (0.1, 0.25, 0.5)
"""Those that a card tells figures for."""
_ROUNDS, _CLOSE = 1000, 1e-7
_DECAY = -0.7
"""Steps of a running estimate: slower than one in n, which would stay near where it began."""


def check_prevalence(prevalence: float) -> float:
    """Return the prevalence; raises `InputError` for what is no part of responses that can be
    hallucinated."""
    if not LOWEST <= prevalence <= 1 - LOWEST:
        raise InputError(
            f"a prevalence is from {LOWEST} to {1 - LOWEST}, got {prevalence:g}", field="prevalence"
        )
    return float(prevalence)


def require_enough(responses: int) -> None:
    """Raise `InputError` for fewer responses than a prevalence is estimated from."""
    if responses < FEWEST:
        raise InputError(
            f"a prevalence is estimated from {FEWEST} responses or more, and there are {responses}; give it "
            "as a number",
            field="prevalence",
        )


def at_prevalence(probabilities: ArrayLike, trained: float, prevalence: float) -> Scores:
    """Shift probabilities (rows,) to those that hold where `prevalence` of responses are hallucinated, of
    those that hold where `trained` are."""
    clipped = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-12, 1 - 1e-12)
    shifted: Scores = expit(logit(clipped) + logit(prevalence) - logit(trained))
    return shifted


def estimated_prevalence(probabilities: ArrayLike, trained: float) -> float:
    """Return the prevalence under which unlabelled responses with these probabilities (rows,) are most
    likely, by expectation maximisation; raises `InputError` for fewer than `FEWEST`."""
    shares = np.asarray(probabilities, dtype=np.float64)
    require_enough(len(shares))
    prevalence = trained
    for _ in range(_ROUNDS):
        estimate = float(np.clip(at_prevalence(shares, trained, prevalence).mean(), LOWEST, 1 - LOWEST))
        if abs(estimate - prevalence) < _CLOSE:
            break
        prevalence = estimate
    return estimate


@dataclass(slots=True)
class RunningPrevalence:
    """A prevalence that follows a stream of unlabelled responses, one probability at a time.

    Expectation maximisation online (Cappé and Moulines, J. R. Statist. Soc. B 71, 2009): each response moves
    the estimate towards its own shifted probability, by a step that shrinks to one in `window` responses,
    so that about as many are remembered. It starts at `trained`, where the probabilities hold.
    """

    trained: float
    window: int = 500
    prevalence: float = field(init=False)
    responses: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.window < FEWEST:
            raise InputError(f"a window has {FEWEST} responses or more, got {self.window}", field="window")
        self.prevalence = check_prevalence(self.trained)

    def update(self, probability: float) -> float:
        """Return the probability of one more response at the estimate that it moves; raises `InputError` for
        what is no probability, which moves nothing."""
        if not 0 <= probability <= 1:
            raise InputError(f"a probability is from 0 to 1, got {probability:g}", field="probability")
        self.responses += 1
        shifted = float(at_prevalence(probability, self.trained, self.prevalence))
        step = max((FEWEST + self.responses) ** _DECAY, 1 / self.window)
        moved = self.prevalence + step * (shifted - self.prevalence)
        self.prevalence = min(max(moved, LOWEST), 1 - LOWEST)
        return float(at_prevalence(probability, self.trained, self.prevalence))
