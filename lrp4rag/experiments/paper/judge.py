"""The nested search of `cross_validated`, cut into pieces that rows of a table share.

A table asks for the best of many sets of contenders: of each classifier, of each vector, of all of them.
What a contender makes of the rows, in every fold and inside it, is the same in all these sets. So it is
computed once a contender (`judge`); choosing and calibrating is cheap and comes after (`choose`). The outcome
is that of `cross_validated` on the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.calibration import (
    CALIBRATION_FOLDS,
    Contender,
    Folds,
    Groups,
    Labels,
    Scores,
    fit,
    grouped_folds,
    margin_of,
    sigmoid_of,
    worth,
)
from lrp4rag.errors import LRP4RAGError
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.training.search import THRESHOLD, Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What one contender makes of R rows in one repeat of F folds.

    * `scores` (R,): of each row, by the model fitted without its fold. They rise with the evidence.
    * `inner` (F, R): scores that the rows a fold learns from get from its inner folds, NaN for its other
      rows; (0, R) where the contender need be neither chosen nor calibrated.
    * `cut`: the score from which the model itself flags.
    * `probable`: whether a score is a log odds that needs no calibration.
    """

    label: str
    scores: NDArray[np.float64]
    inner: NDArray[np.float64]
    cut: float
    probable: bool


def judge(
    contender: Contender,
    labels: Labels,
    groups: Groups,
    protocol: Protocol,
    repeat: int = 0,
    *,
    inner: bool = True,
) -> Judged:
    """Fit a contender on the training rows of each fold, and on those of its inner folds."""
    folds = _folds(protocol, labels, groups, repeat)
    scores, cut = np.full(len(labels), np.nan), 0.0
    within = np.full((len(folds) if inner else 0, len(labels)), np.nan)
    for k, split in enumerate(folds):
        scores[split.test], cut = _scored(contender, labels, groups, split.train, split.test)
        rows = split.train
        folds_within = (
            _inner_folds(labels[rows].tobytes(), tuple(groups[rows]), protocol.seed) if inner else []
        )
        for train, test in folds_within:
            within[k, rows[test]], _ = _scored(contender, labels, groups, rows[train], rows[test])
    probable = bool(getattr(contender.estimator, "gives_probabilities", False))
    return Judged(contender.label, scores, within, cut, probable)


def choose(judged: Sequence[Sequence[Judged]], labels: Labels, groups: Groups, protocol: Protocol) -> Outcome:
    """The outcome of choosing among contenders inside each fold; `judged` has the contenders of each repeat.

    Raises `LRP4RAGError` where several contend and one was judged without inner folds.
    """
    probabilities = np.full((protocol.repeats, len(labels)), np.nan)
    chosen = []
    for repeat, contenders in enumerate(judged):
        if len(contenders) > 1 and not all(len(each.inner) for each in contenders):
            raise LRP4RAGError("contenders that are chosen among must be judged inside the folds")
        for k, split in enumerate(_folds(protocol, labels, groups, repeat)):
            best = max(contenders, key=lambda each: _value(each, k, split, labels, protocol))
            chosen.append(best.label)
            probabilities[repeat, split.test] = _probability(best, k, split, labels)
    return Outcome(probabilities, probabilities >= THRESHOLD, tuple(chosen))


def uncalibrated(judged: Sequence[Judged]) -> Outcome:
    """The outcome of one contender, judged in each repeat, that decides as it does by itself."""
    scores = np.stack([repeat.scores for repeat in judged])
    probabilities = scores if judged[0].cut else expit(scores)
    flagged = scores > judged[0].cut
    return Outcome(np.asarray(probabilities), flagged, (judged[0].label,) * len(judged))


def _folds(protocol: Protocol, labels: Labels, groups: Groups, repeat: int) -> list[Split]:
    return [split for split in _splits(protocol, labels.tobytes(), tuple(groups)) if split.repeat == repeat]


@lru_cache(maxsize=16)
def _splits(protocol: Protocol, labels: bytes, groups: tuple[str, ...]) -> list[Split]:
    """Kept, since stratifying hundreds of groups takes as long as a fit, and contenders share their folds."""
    everything = np.ones(len(groups), dtype=bool)
    return splits(protocol, np.frombuffer(labels, dtype=bool), np.array(groups), everything, everything)[0]


@lru_cache(maxsize=64)
def _inner_folds(labels: bytes, groups: tuple[str, ...], seed: int) -> Folds:
    return grouped_folds(np.frombuffer(labels, dtype=bool), np.array(groups), CALIBRATION_FOLDS, seed)


def _scored(
    contender: Contender, labels: Labels, groups: Groups, train: NDArray[np.intp], test: NDArray[np.intp]
) -> tuple[Scores, float]:
    inputs = contender.inputs
    model = fit(contender.estimator, inputs[train], labels[train], groups[train])
    return margin_of(model, inputs[test])


def _value(judged: Judged, fold: int, split: Split, labels: Labels, protocol: Protocol) -> float:
    if not len(judged.inner):
        return 0.0
    inner = judged.inner[fold, split.train]
    return worth(protocol.scoring, labels[split.train], inner, judged.cut, calibrated=not judged.probable)


def _probability(judged: Judged, fold: int, split: Split, labels: Labels) -> Scores:
    scores = judged.scores[split.test]
    if judged.probable:
        return np.asarray(expit(scores))
    sigmoid = sigmoid_of(judged.inner[fold, split.train], labels[split.train])
    return np.asarray(sigmoid.predict(scores))
