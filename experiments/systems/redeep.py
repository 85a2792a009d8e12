"""ReDeEP: what the reader takes from its weights, less what it takes from the context (arXiv 2410.11414).

A part's score (section 4.1) is a sum of parametric knowledge scores over some layers, less a sum of external
context scores over some heads, each with a weight; a response's is the mean over its parts, which are tokens
or sentences (section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from experiments.systems.baseline import Fitted, Reading
from experiments.systems.encoders.weights import MINILM, MINILM_PACKAGE
from experiments.systems.facts import LABELS, SPANS, Facts
from experiments.systems.redeep_scores import DECIMALS, TOP_PERCENT, RedeepScores, redeep_scores
from experiments.systems.resources import Resources
from experiments.systems.scoring import Calibration, PartScores, threshold_of
from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, Candidate, chosen, fit, grouped_folds
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows

HEADS, LAYERS, RATIOS = (1, 4, 16), (1, 3, 8), (0.25, 1.0, 4.0)
"""Candidate numbers of heads and of layers, and weights of the context against that of knowledge."""

Inputs = NDArray[np.floating[Any]]


class Combination(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The `heads` whose scores fall most with the label and the `layers` whose scores rise most, by Pearson's
    correlation; sums of both are brought to deviation 1, and that of the heads counts `ratio` times.

    The first `split` columns are heads. `weights_` (columns,) are zero where a column was not chosen.
    """

    def __init__(self, split: int, heads: int, layers: int, ratio: float) -> None:
        self.split = split
        self.heads = heads
        self.layers = layers
        self.ratio = ratio

    def fit(self, inputs: Inputs, labels: NDArray[np.bool_]) -> Combination:
        self.classes_ = np.array([False, True])
        rises = correlations(inputs, labels)
        heads = np.argsort(rises[: self.split], kind="stable")[: self.heads]
        layers = self.split + np.argsort(-rises[self.split :], kind="stable")[: self.layers]
        self.weights_ = np.zeros(inputs.shape[1])
        self.weights_[heads] = -self.ratio / _deviation(inputs[:, heads].sum(axis=1))
        self.weights_[layers] = 1 / _deviation(inputs[:, layers].sum(axis=1))
        return self

    def decision_function(self, inputs: Inputs) -> NDArray[np.float64]:
        found: NDArray[np.float64] = inputs @ self.weights_
        return found


def correlations(inputs: Inputs, labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pearson's, of each column with the labels; 0 for a constant one."""
    columns = inputs - inputs.mean(axis=0, dtype=np.float64)
    flags = labels - labels.mean()
    scale = np.linalg.norm(columns, axis=0) * np.linalg.norm(flags)
    found: NDArray[np.float64] = flags @ columns / np.where(scale > 0, scale, 1)
    return found


def _deviation(values: NDArray[np.floating[Any]]) -> float:
    return float(values.std(dtype=np.float64)) or 1.0


def candidates_on(means: Inputs, split: int) -> list[Candidate]:
    """Of responses' mean scores (rows, columns), of which the first `split` are heads."""
    name = "{} heads, {} layers, {:g} to 1"
    grid = product(HEADS, LAYERS, RATIOS)
    return [Candidate(name.format(*one), "", "", Combination(split, *one), means) for one in grid]


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

    def scored(self, weights: NDArray[np.float64]) -> PartScores:
        return PartScores(self.spans, self.inputs @ weights)


@dataclass(frozen=True, slots=True)
class Redeep:
    """`parts` says what is scored by itself. Numbers of heads and layers and the ratio are chosen on inner
    folds, and so is the threshold, each time with heads and layers of the rows learned from."""

    facts: Facts
    parts: Callable[[RedeepScores], Parts]

    def measure(self, rows: Rows, resources: Resources) -> list[Parts]:
        """By the reader; tokens and sentences share what is cached."""
        identity = resources.reader.identity
        settings = {
            "reader": f"{identity.name} ({identity.digest}, {identity.dtype})",
            "embedder": MINILM,
            "top": TOP_PERCENT,
            "decimals": DECIMALS,
            "tokens": "where they are predicted",
        }

        def measure(group: list[Example]) -> list[RedeepScores]:
            return [redeep_scores(resources.reader, resources.embedder, one) for one in group]

        found = resources.measured("redeep", settings, rows.examples, RedeepScores, measure)
        return [self.parts(one) for one in found]

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        """The fitted `model` are the weights (columns,) of heads and layers."""
        parts, labels, groups = self.measure(rows, resources), rows.labels, rows.groups
        means = np.stack([one.inputs.mean(axis=0, dtype=np.float64) for one in parts])
        candidates = candidates_on(means, parts[0].heads)
        best, outside = chosen(candidates, labels, groups, np.arange(len(rows)), resources.seed)
        assert outside is not None
        of_folds = np.zeros_like(means)  # for each response the weights of a fold without it
        for train, test in grouped_folds(labels, groups, CALIBRATION_FOLDS, resources.seed):
            of_folds[test] = fit(best.estimator, means[train], labels[train], groups[train]).weights_
        scored = [one.scored(weights) for one, weights in zip(parts, of_folds, strict=True)]
        weights = fit(best.estimator, means, labels, groups).weights_

        def read(rows: Rows, resources: Resources) -> Reading:
            found = [one.scored(weights) for one in self.measure(rows, resources)]
            return Reading(np.array([one.scores.mean() for one in found]), found)

        calibration = Calibration.of(outside, labels, rows.generators)
        return Fitted(best.label, weights, read, calibration, threshold_of(scored, rows.examples))


def _facts(title: str, weights: str) -> Facts:
    return Facts(
        title,
        "arXiv 2410.11414",
        "reader's states",
        f"{LABELS}; marks: {SPANS}",
        weights,
        slow=True,
        modules=(MINILM_PACKAGE,),
    )


REDEEP_TOKEN = Redeep(_facts("ReDeEP, tokens", "the reader's"), Parts.tokens)
REDEEP_CHUNK = Redeep(_facts("ReDeEP, chunks", "the reader's, all-MiniLM-L6-v2's"), Parts.sentences)
