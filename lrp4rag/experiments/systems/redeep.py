"""ReDeEP: what the reader takes from its weights, less what it takes from the context (arXiv 2410.11414).

A part's score (section 4.1) is a sum of parametric knowledge scores over some layers, less a sum of external
context scores over some heads, each with a weight; a response's is the mean over its parts, which are tokens
or sentences (section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, chosen, fit, grouped_folds
from lrp4rag.experiments.systems.baseline import LABELS, SPANS, Facts, Outside, Score
from lrp4rag.experiments.systems.calibrated import Calibration
from lrp4rag.experiments.systems.encoders.weights import MINILM, MINILM_PACKAGE
from lrp4rag.experiments.systems.redeep_choice import Inputs, contenders_of
from lrp4rag.experiments.systems.redeep_scores import DECIMALS, RedeepScores, redeep_scores
from lrp4rag.experiments.systems.redeep_trace import TOP_PERCENT
from lrp4rag.experiments.systems.suspicion import Suspicion, marked, threshold_of

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Of P parts of one response: `spans` (P, 2), their characters, and `inputs` (P, L x H + L), external
    context scores, then parametric knowledge scores; `heads` is L x H."""

    spans: NDArray[np.intp]
    inputs: Inputs
    heads: int

    @classmethod
    def tokens(cls, scores: RedeepScores) -> Parts:
        return cls._of(scores.tokens, scores.ecs, scores.pks)

    @classmethod
    def sentences(cls, scores: RedeepScores) -> Parts:
        return cls._of(scores.spans, scores.chunk_ecs, scores.chunk_pks)

    @classmethod
    def _of(cls, spans: NDArray[np.intp], context: Inputs, knowledge: Inputs) -> Parts:
        flat = context.reshape(-1, len(spans))
        return cls(spans, np.concatenate([flat, knowledge]).T, len(flat))


@dataclass(frozen=True, slots=True)
class Redeep:
    """`parts` says what is scored by itself. Numbers of heads and layers and the ratio are chosen on inner
    folds, and so is the threshold, each time with heads and layers of the rows learned from."""

    facts: Facts
    parts: Callable[[RedeepScores], Parts]

    def measure(self, rows: Rows, kit: Kit) -> list[Parts]:
        """From the kit's reader, or from disk; tokens and sentences share what was measured."""
        identity = kit.reader.identity
        settings = {
            "reader": f"{identity.name} ({identity.digest}, {identity.dtype})",
            "embedder": MINILM,
            "top": TOP_PERCENT,
            "decimals": DECIMALS,
            "tokens": "where they are predicted",
        }
        found = kit.measured(
            "redeep",
            settings,
            rows.examples,
            RedeepScores,
            lambda group: [redeep_scores(kit.reader, kit.embedder, one) for one in group],
        )
        return [self.parts(one) for one in found]

    def fit(self, rows: Rows, kit: Kit) -> Champion:
        parts, labels, groups = self.measure(rows, kit), rows.labels, rows.groups
        means = np.stack([one.inputs.mean(axis=0, dtype=np.float64) for one in parts])
        contenders = contenders_of(means, parts[0].heads)
        best, outside = chosen(contenders, labels, groups, np.arange(len(rows)), kit.seed)
        assert outside is not None
        weights = np.zeros_like(means)  # for each response those of a fold without it
        for train, test in grouped_folds(labels, groups, CALIBRATION_FOLDS, kit.seed):
            weights[test] = fit(best.estimator, means[train], labels[train], groups[train]).weights_
        suspicions = [_suspicion(one, own) for one, own in zip(parts, weights, strict=True)]
        return Champion(
            baseline=self,
            chosen=best.label,
            weights=fit(best.estimator, means, labels, groups).weights_,
            calibration=Calibration.of(outside, labels, rows.generators),
            threshold=threshold_of(suspicions, rows.examples),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Champion:
    """Fitted: the `weights` (columns,) of heads and layers, and the score from which a part is marked."""

    baseline: Redeep
    chosen: str
    weights: NDArray[np.float64]
    calibration: Calibration
    threshold: float

    @property
    def outside(self) -> Outside:
        return self.calibration.outside

    def score(self, rows: Rows, kit: Kit) -> list[Score]:
        found = [_suspicion(one, self.weights) for one in self.baseline.measure(rows, kit)]
        scores = np.array([one.scores.mean() for one in found])
        suspects = [marked(one, self.threshold) for one in found]
        return self.calibration.verdicts(scores, rows.generators, suspects)


def _suspicion(parts: Parts, weights: NDArray[np.float64]) -> Suspicion:
    return Suspicion(parts.spans, parts.inputs @ weights)


TRAINING = f"{LABELS}; marks: {SPANS}"

REDEEP_TOKEN = Redeep(
    Facts(
        "ReDeEP, tokens",
        "arXiv 2410.11414",
        "reader's states",
        TRAINING,
        "the reader's",
        slow=True,
        modules=(MINILM_PACKAGE,),
    ),
    Parts.tokens,
)
REDEEP_CHUNK = Redeep(
    Facts(
        "ReDeEP, chunks",
        "arXiv 2410.11414",
        "reader's states",
        TRAINING,
        "the reader's, all-MiniLM-L6-v2's",
        slow=True,
        modules=(MINILM_PACKAGE,),
    ),
    Parts.sentences,
)
