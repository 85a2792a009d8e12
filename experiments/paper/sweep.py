"""The threshold method of LRP4RAG (arXiv 2408.15533, Tables 1 and 5): flag a response of low mean relevance.

The paper resamples a row's relevance to 100 values, trims extremes, scales to (0, 1), takes the mean, and
sweeps a threshold over it. What is scaled decides what is measured, so both readings are here:

* `within`: each row by its own minimum and maximum, after five of 110 positions are cut at either end, as
  the paper's code does. The mean then says how peaked a row is and nothing of how much relevance it has.
* `across`: the rows' means in logits, clipped at their 1 % and 99 % quantiles. R_prompt and R_response are
  means of the same matrix, so here they differ by resampling alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.metrics import compare
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.lrp.resampling import resample
from lrp4rag.training.metrics import RESAMPLES, token_intervals
from lrp4rag.training.validation import Outcome

Values = NDArray[np.float64]
Labels = NDArray[np.bool_]
Scaling = Literal["within", "across"]

SCALINGS: tuple[Scaling, ...] = ("within", "across")
THRESHOLDS: Values = np.arange(101) / 100
LENGTH, TRIMMED = 100, 5
CLIPPED = 0.01
FOLDS, SEED = 5, 0


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Metrics (thresholds) of flagging every row whose scaled mean is below the threshold.

    Precision is NaN where nothing is flagged.
    """

    thresholds: Values
    accuracy: Values
    precision: Values
    recall: Values
    f1: Values

    def best(self) -> float:
        """The lowest of the thresholds that maximise F1."""
        return float(self.thresholds[np.nanargmax(self.f1)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """Thresholds (one a fold, or one) and what flagging by them is worth, with bootstrap intervals."""

    thresholds: tuple[float, ...]
    metrics: Metrics


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdMethod:
    """One vector and scaling on the rows of one generator.

    `reported` chose its threshold on the very rows, as the paper did; `honest` on the training part of each
    grouped fold, scale included. `prevalence` is the share of hallucinated rows, and `over_everything` the F1
    of `honest` less that of flagging every row, on the same bootstrap draws.
    """

    vector: str
    scaling: Scaling
    sweep: Sweep
    reported: Chosen
    honest: Chosen
    prevalence: float
    over_everything: Interval

    @property
    def flag_everything(self) -> float:
        """The F1 of flagging every row: what a best F1 must beat."""
        return 2 * self.prevalence / (1 + self.prevalence)


def threshold_method(
    vector: str,
    vectors: Sequence[NDArray[np.floating]],
    labels: Labels,
    groups: NDArray[np.str_],
    *,
    scaling: Scaling = "within",
    resamples: int = RESAMPLES,
) -> ThresholdMethod:
    """Sweep the threshold over rows of relevance of any length; `vector` is only their name."""
    means = row_means(vectors, scaling)
    scaled = _scaled(means, means, scaling)
    curve = sweep(scaled, labels)
    best = curve.best()
    thresholds, flagged = _chosen_in_folds(means, labels, groups, scaling)

    def metrics(flags: Labels) -> Metrics:
        return token_intervals(labels, -means, flags, groups, resamples)

    everything = _outcome(np.ones_like(flagged))
    gained = compare(_outcome(flagged), everything, labels, groups, resamples=resamples)

    return ThresholdMethod(
        vector=vector,
        scaling=scaling,
        sweep=curve,
        reported=Chosen((best,), metrics(scaled < best)),
        honest=Chosen(thresholds, metrics(flagged)),
        prevalence=float(labels.mean()),
        over_everything=gained["f1"],
    )


def row_means(vectors: Sequence[NDArray[np.floating]], scaling: Scaling) -> Values:
    """The mean of each resampled row (rows): in logits, or with `within` scaled to (0, 1).

    A row without any variation has no shape; it gets 1/2.
    """
    if scaling == "across":
        return np.array([resample(vector, LENGTH).mean() for vector in vectors])
    rows = np.stack([resample(vector, LENGTH + 2 * TRIMMED)[TRIMMED:-TRIMMED] for vector in vectors])
    low, high = rows.min(1, keepdims=True), rows.max(1, keepdims=True)
    spread = high - low
    scaled = np.where(spread > 0, (rows - low) / np.where(spread > 0, spread, 1), 0.5)
    return np.asarray(scaled.mean(1))


def sweep(scaled: Values, labels: Labels, thresholds: Values = THRESHOLDS) -> Sweep:
    """Metrics of every threshold over scaled means (rows), of which some are hallucinated."""
    flagged = scaled < thresholds[:, None]
    hits, raised, positive = (flagged & labels).sum(1), flagged.sum(1), labels.sum()
    return Sweep(
        thresholds=thresholds,
        accuracy=(flagged == labels).mean(1),
        precision=hits / np.where(raised, raised, np.nan),
        recall=hits / positive,
        f1=2 * hits / (raised + positive),
    )


def _scaled(means: Values, fitted_on: Values, scaling: Scaling) -> Values:
    """Means between 0 and 1; `across` has its limits from `fitted_on`, so that folds can be kept apart."""
    if scaling == "within":
        return means
    low, high = np.quantile(fitted_on, [CLIPPED, 1 - CLIPPED])
    return np.asarray(np.clip((means - low) / ((high - low) or 1.0), 0, 1))


def _chosen_in_folds(
    means: Values, labels: Labels, groups: NDArray[np.str_], scaling: Scaling
) -> tuple[tuple[float, ...], Labels]:
    thresholds, flagged = [], np.zeros(len(labels), dtype=bool)
    for train, test in grouped_folds(labels, groups, FOLDS, SEED):
        best = sweep(_scaled(means[train], means[train], scaling), labels[train]).best()
        flagged[test] = _scaled(means[test], means[train], scaling) < best
        thresholds.append(best)
    return tuple(thresholds), flagged


def _outcome(flagged: Labels) -> Outcome:
    return Outcome(flagged[None].astype(np.float64), flagged[None])
