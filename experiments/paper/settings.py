"""What a reproduction computes: the candidates, their settings and the lengths of vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lrp4rag.classifiers.features import VECTORS
from lrp4rag.classifiers.registry import candidates_of
from lrp4rag.training.folds import HONEST, PAPER, Protocol
from lrp4rag.training.metrics import RESAMPLES
from lrp4rag.util.errors import LRP4RAGError

SWEEP_STEP, LONGEST = 10, 500
SHOWN_LENGTHS = (10, 20, 30, 50, 100, 150, 200, 220, 250, 300, 350, 400, 450, 500)
"""Of the sweep, what the page's table has, and where the constant control is computed."""

ONE_VECTOR, TWO_VECTORS, MATRICES = ("prompt", "response"), ("total", "segments"), ("matrix", "matrix_t")
"""R_prompt and R_response are the paper's vectors, as R* is; those in the middle are ours."""

VECTOR_WORDS = {
    "prompt": "R_prompt",
    "response": "R_response",
    "total": "n R_response",
    "segments": "R_response by segment",
    "matrix": "R* along the response",
    "matrix_t": "R* along the prompt",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """Candidates of one classifier. R* has the length that it is stored with."""

    lengths: tuple[int, ...]
    settings: tuple[str, ...]


# Fewer than `train` tries: a network or a forest takes several times as long as an SVM. The mean of a
# resampled row hardly depends on the length, so the threshold has one.
GRID = {
    "threshold": Grid((220,), ("trim=0.01",)),
    "svm": Grid((20, 60, 220), ("C=0.3", "C=1", "C=3")),
    "mlp": Grid((60,), ("hidden=64, alpha=1",)),
    "forest": Grid((60,), ("leaf=5",)),
    "lstm": Grid((), ("2 x 256",)),
}

DEFAULTS = {
    "threshold": "trim=0.01",
    "svm": "C=1",
    "mlp": "hidden=64, alpha=0.1",
    "forest": "leaf=5",
    "lstm": "2 x 256",
    "logistic": "C=1",
}
"""Settings under the paper's protocol, which chooses nothing: scikit-learn's defaults, or what is nearest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`sweep`: the lengths of Tables 3 and 4, and `sweep_classifiers` what is swept over them."""

    protocols: tuple[str, ...] = ("honest", "paper")
    repeats: int = 1
    resamples: int = RESAMPLES
    seed: int = 0
    sweep: tuple[int, ...] = tuple(range(SWEEP_STEP, LONGEST + 1, SWEEP_STEP))
    sweep_classifiers: tuple[str, ...] = ("svm",)

    @property
    def band_resamples(self) -> int:
        """Of the curves over lengths: there are hundreds of points, and none of them decides anything."""
        return max(self.resamples // 5, 20)

    @property
    def honest(self) -> Protocol:
        return replace(HONEST, repeats=self.repeats, seed=self.seed, lengths=GRID["svm"].lengths)

    @property
    def by_accuracy(self) -> Protocol:
        """The same, but candidates are chosen by accuracy."""
        return replace(self.honest, scoring="accuracy")

    @property
    def plain(self) -> Protocol:
        """The honest folds for one candidate at its default setting: nothing is chosen or calibrated."""
        return replace(self.honest, nested=False)

    @property
    def paper(self) -> Protocol:
        return replace(PAPER, seed=self.seed)


def lengths_of(classifier: str, vector: str) -> tuple[int, ...]:
    return (VECTORS[vector].length,) if vector in MATRICES else GRID[classifier].lengths


def estimator_of(classifier: str, settings: str) -> Any:
    """An unfitted estimator; raises `LRP4RAGError` where the classifier has no such candidate."""
    candidates = candidates_of(classifier)
    if settings not in candidates:
        raise LRP4RAGError(f"{classifier} has no '{settings}' but {', '.join(candidates)}")
    return candidates[settings]
