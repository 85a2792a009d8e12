"""Operating points: probabilities from which a response is called hallucinated, each chosen for a purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import OperatingPoint
from lrp4rag.errors import InputError

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]

PRECISION, RECALL = 0.8, 0.9
QUANTILES = 101
DEFAULT_POINT = "balanced"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What each threshold (T,), rising, makes of labelled responses."""

    thresholds: Scores
    precision: Scores
    recall: Scores
    false_positive_rate: Scores

    @classmethod
    def of(cls, labels: Labels, probabilities: Scores) -> Curve:
        """Of every probability that occurs; raises `ValueError` unless both classes do."""
        if labels.all() or not labels.any():
            raise ValueError("an operating point needs responses of both classes")
        thresholds = np.unique(probabilities)
        hits = _at_least(probabilities[labels], thresholds)
        alarms = _at_least(probabilities[~labels], thresholds)
        return cls(thresholds, hits / (hits + alarms), hits / labels.sum(), alarms / (~labels).sum())


def _at_least(values: Scores, thresholds: Scores) -> NDArray[np.intp]:
    counts: NDArray[np.intp] = len(values) - np.searchsorted(np.sort(values), thresholds)
    return counts


@dataclass(frozen=True, slots=True)
class Rule:
    """`choose` gives the number of a threshold of the curve."""

    words: str
    choose: Callable[[Curve], int]


def _balanced(curve: Curve) -> int:
    """Where about as many are flagged as are hallucinated: unlike the highest accuracy or F1, which many
    thresholds nearly have, there is one such place, and other rows put it nearly there too."""
    surplus = np.full(len(curve.thresholds), np.inf)
    np.divide(curve.recall, curve.precision, out=surplus, where=curve.precision > 0)
    return int(np.argmin(np.abs(surplus - 1)))


def _precise(curve: Curve) -> int:
    """The lowest threshold with that precision; where none has it, the most precise."""
    enough = curve.precision >= PRECISION
    return int(np.argmax(enough)) if enough.any() else int(np.argmax(curve.precision))


def _sensitive(curve: Curve) -> int:
    return int(np.flatnonzero(curve.recall >= RECALL)[-1])


RULES: dict[str, Rule] = {
    DEFAULT_POINT: Rule("as many false alarms as misses: precision equals recall", _balanced),
    "high-precision": Rule(f"lowest threshold with a precision of {PRECISION:.0%}, or the most", _precise),
    "high-recall": Rule(f"highest threshold with a recall of {RECALL:.0%}", _sensitive),
}


def operating_points(labels: Labels, probabilities: Scores) -> dict[str, OperatingPoint]:
    """The points of `RULES`, from probabilities of models that did not see the responses' sources."""
    curve = Curve.of(labels, probabilities)
    points = {}
    for name, rule in RULES.items():
        k = rule.choose(curve)
        points[name] = OperatingPoint(
            threshold=float(curve.thresholds[k]),
            rule=rule.words,
            precision=float(curve.precision[k]),
            recall=float(curve.recall[k]),
            false_positive_rate=float(curve.false_positive_rate[k]),
        )
    return points


def faithful_quantiles(labels: Labels, probabilities: Scores) -> list[float]:
    """Evenly spaced quantiles of the faithful responses' probabilities: what any target rate needs."""
    values: list[float] = np.quantile(probabilities[~labels], np.linspace(0, 1, QUANTILES)).tolist()
    return values


def threshold_at(rate: float, quantiles: Sequence[float]) -> float:
    """The threshold that a part `rate` of faithful responses reaches; raises `InputError` outside (0, 1)."""
    if not 0 < rate < 1:
        raise InputError(f"a false-positive rate is above 0 and below 1, got {rate:g}")
    return float(np.interp(1 - rate, np.linspace(0, 1, len(quantiles)), quantiles))
