"""Metrics of a binary detector (positive: hallucinated), with bootstrap intervals over sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from lrp4rag.classifiers.card import Interval, Metrics

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]

RESAMPLES = 1000
CALIBRATION_BINS = 10


def response_metrics(labels: Labels, probabilities: Scores, threshold: float) -> dict[str, float]:
    """AUROC, AUPRC, balanced accuracy, accuracy, precision, recall, F1 and ECE; NaN where undefined."""
    flagged = probabilities >= threshold
    return {
        **_ranking(labels, probabilities),
        **_decisions(labels, flagged),
        "ece": expected_calibration_error(labels, probabilities),
    }


def token_metrics(labels: Labels, scores: Scores, flagged: Labels) -> dict[str, float]:
    """The same for tokens, whose scores are no probabilities and whose flags come from a threshold."""
    return {**_ranking(labels, scores), **_decisions(labels, flagged)}


def expected_calibration_error(labels: Labels, probabilities: Scores) -> float:
    """Mean distance of probability and frequency over ten equal bins, weighted by their rows."""
    bins = np.minimum((probabilities * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = [
        abs(labels[bins == k].mean() - probabilities[bins == k].mean()) * (bins == k).mean()
        for k in np.unique(bins)
    ]
    return float(sum(gaps))


def bootstrap(
    metrics: Callable[[NDArray[np.intp]], dict[str, float]],
    groups: NDArray[np.str_],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metrics:
    """Each metric's value and its 95 % percentile interval over resampled groups (sources).

    `metrics` maps row numbers to values. Rows of one group are drawn together.
    """
    _, codes = np.unique(groups, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    generator = np.random.default_rng(seed)
    value = metrics(np.arange(len(groups)))
    drawn = [
        metrics(np.concatenate([members[k] for k in generator.integers(len(members), size=len(members))]))
        for _ in range(resamples)
    ]
    return {name: _interval(value[name], [row[name] for row in drawn]) for name in value}


def _interval(value: float, drawn: list[float]) -> Interval:
    known = [x for x in drawn if np.isfinite(x)]
    if not np.isfinite(value) or not known:
        return Interval(value=None, low=None, high=None)
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(value=float(value), low=float(low), high=float(high))


def _ranking(labels: Labels, scores: Scores) -> dict[str, float]:
    if labels.all() or not labels.any():
        return {"auroc": np.nan, "auprc": np.nan}
    return {
        "auroc": float(roc_auc_score(labels, scores)),
        "auprc": float(average_precision_score(labels, scores)),
    }


def _decisions(labels: Labels, flagged: Labels) -> dict[str, float]:
    hits, alarms = int((labels & flagged).sum()), int((~labels & flagged).sum())
    misses, passed = int((labels & ~flagged).sum()), int((~labels & ~flagged).sum())
    recall, specificity = _ratio(hits, hits + misses), _ratio(passed, passed + alarms)
    return {
        "balanced_accuracy": (recall + specificity) / 2,
        "accuracy": (hits + passed) / len(labels),
        "precision": _ratio(hits, hits + alarms),
        "recall": recall,
        "f1": _ratio(2 * hits, 2 * hits + alarms + misses),
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
