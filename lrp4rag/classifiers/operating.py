"""Operating points: probabilities from which a response is called hallucinated, each chosen for a purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import Labels, Scores
from lrp4rag.classifiers.card import OperatingPoint
from lrp4rag.util.errors import InputError

PRECISION, RECALL, ALARMS = 0.8, 0.9, 0.1
QUANTILES = 101
FEWEST = 20
"""Faithful responses of another set by which its rate of false alarms is known."""
DEFAULT_POINT = "balanced"
FEW_ALARMS = "one-in-ten"
"""The point that detectors of plain passes flag from, unless another is chosen."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`choose` gives the number of a threshold, of the precision, the recall and the false-positive rate (T,)
    of rising thresholds."""

    words: str
    choose: Callable[[Scores, Scores, Scores], int]


def _balanced(precision: Scores, recall: Scores, _: Scores) -> int:
    """Choose where about as many are flagged as are hallucinated: unlike the highest accuracy or F1, which
    many thresholds nearly have, there is one such place, and other rows put it nearly there too."""
    surplus = np.full(len(precision), np.inf)
    np.divide(recall, precision, out=surplus, where=precision > 0)
    return int(np.argmin(np.abs(surplus - 1)))


def _precise(precision: Scores, _: Scores, __: Scores) -> int:
    """Return the lowest threshold with that precision; where none has it, the most precise."""
    return int(np.argmax(np.minimum(precision, PRECISION)))


def _sensitive(_: Scores, recall: Scores, __: Scores) -> int:
    return int(np.flatnonzero(recall >= RECALL)[-1])


def _few_alarms(_: Scores, __: Scores, false_alarms: Scores) -> int:
    """Return the lowest threshold with so few; where none has, the highest threshold."""
    few = np.flatnonzero(false_alarms <= ALARMS)
    return int(few[0]) if len(few) else len(false_alarms) - 1


RULES: dict[str, Rule] = {
    DEFAULT_POINT: Rule("as many false alarms as misses: precision equals recall", _balanced),
    FEW_ALARMS: Rule(f"flags at most {ALARMS:.0%} of each set's faithful responses", _few_alarms),
    "high-precision": Rule(f"lowest threshold with a precision of {PRECISION:.0%}, or the most", _precise),
    "high-recall": Rule(f"highest threshold with a recall of {RECALL:.0%}", _sensitive),
}


def operating_points(
    labels: Labels, probabilities: Scores, others: Sequence[Scores] = ()
) -> dict[str, OperatingPoint]:
    """Return the points of `RULES`, from probabilities of models that did not see the responses' sources.

    `others` are probabilities of faithful responses of other sets of data: the rate of false alarms is that
    of the set with most. Raises `ValueError` unless there are responses of both classes.
    """
    from sklearn.metrics import confusion_matrix_at_thresholds  # in training only

    if labels.all() or not labels.any():
        raise ValueError("an operating point needs responses of both classes")
    falling = confusion_matrix_at_thresholds(labels, probabilities)
    _, alarms, _, hits, thresholds = (counts[::-1] for counts in falling)
    precision, recall, false_alarms = hits / (hits + alarms), hits / labels.sum(), alarms / (~labels).sum()
    for rates in others:
        above = len(rates) - np.searchsorted(np.sort(rates), thresholds)
        false_alarms = np.maximum(false_alarms, above / len(rates))
    points = {}
    for name, rule in RULES.items():
        k = rule.choose(precision, recall, false_alarms)
        points[name] = OperatingPoint(
            threshold=float(thresholds[k]),
            rule=rule.words,
            precision=float(precision[k]),
            recall=float(recall[k]),
            false_positive_rate=float(false_alarms[k]),
        )
    return points


def precision_at(prevalence: float, recall: float, false_positive_rate: float) -> float:
    """Return the precision of a point with these rates, where that part of responses is hallucinated."""
    hits, alarms = prevalence * recall, (1 - prevalence) * false_positive_rate
    return hits / (hits + alarms) if hits + alarms else 1.0


def faithful_quantiles(labels: Labels, probabilities: Scores, others: Sequence[Scores] = ()) -> list[float]:
    """Return evenly spaced quantiles of the faithful responses' probabilities: what any target rate needs. Of
    several sets, the highest."""
    levels = np.linspace(0, 1, QUANTILES)
    quantiles = [np.quantile(scores, levels) for scores in (probabilities[~labels], *others)]
    values: list[float] = np.max(quantiles, axis=0).tolist()
    return values


def by_set(
    labels: Labels, probabilities: Scores, sets: NDArray[np.str_]
) -> tuple[Labels, Scores, list[Scores]]:
    """Return labels and probabilities of the first row's set, and of each other the probabilities of its
    faithful rows, if it has `FEWEST`: what the functions above take."""
    first = sets == sets[0]
    others = [probabilities[(sets == name) & ~labels] for name in sorted(set(sets[~first]))]
    return labels[first], probabilities[first], [scores for scores in others if len(scores) >= FEWEST]


def threshold_at(rate: float, quantiles: Sequence[float]) -> float:
    """Return the threshold that a part `rate` of faithful responses reaches; raises `InputError` outside (0,
    1)."""
    if not 0 < rate < 1:
        raise InputError(f"a false-positive rate is above 0 and below 1, got {rate:g}")
    return float(np.interp(1 - rate, np.linspace(0, 1, len(quantiles)), quantiles))
