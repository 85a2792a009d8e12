"""The nested search of `cross_validated`, cut into pieces that methods share.

A table has the best candidate of each classifier, of each vector, and of all of them. The scores of one
candidate, in every fold and inside it, are the same in all these searches: they are computed once
(`fold_scores`). Choosing and calibrating takes little time and comes after (`choose`). The outcome is that of
`cross_validated` on the same candidates.
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
    Candidate,
    Folds,
    Groups,
    Labels,
    Scores,
    Sigmoid,
    fit,
    grouped_folds,
    margin_of,
    worth,
)
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.training.validation import THRESHOLD, Outcome
from lrp4rag.util.errors import LRP4RAGError


@dataclass(frozen=True, slots=True, eq=False)
class FoldScores:
    """The scores of one candidate on R rows in one repeat of F folds.

    * `scores` (R,): of each row, by the model fitted without its fold. They rise with the evidence.
    * `inner` (F, R): scores of a fold's training rows from its inner folds, NaN for its other rows; (0, R)
      where the candidate need be neither chosen nor calibrated.
    * `cut`: the score from which the model itself flags.
    * `probable`: whether a score is a log odds that needs no calibration.
    """

    label: str
    scores: NDArray[np.float64]
    inner: NDArray[np.float64]
    cut: float
    probable: bool


def fold_scores(
    candidate: Candidate,
    labels: Labels,
    groups: Groups,
    protocol: Protocol,
    repeat: int = 0,
    *,
    inner: bool = True,
) -> FoldScores:
    """Fit a candidate on the training rows of each fold, and on those of its inner folds."""
    folds = _folds(protocol, labels, groups, repeat)
    scores, cut = np.full(len(labels), np.nan), 0.0
    within = np.full((len(folds) if inner else 0, len(labels)), np.nan)
    for k, split in enumerate(folds):
        scores[split.test], cut = _scored(candidate, labels, groups, split.train, split.test)
        rows = split.train
        folds_within = (
            _inner_folds(labels[rows].tobytes(), tuple(groups[rows]), protocol.seed) if inner else []
        )
        for train, test in folds_within:
            within[k, rows[test]], _ = _scored(candidate, labels, groups, rows[train], rows[test])
    probable = bool(getattr(candidate.estimator, "gives_probabilities", False))
    return FoldScores(candidate.label, scores, within, cut, probable)


def choose(
    scored: Sequence[Sequence[FoldScores]], labels: Labels, groups: Groups, protocol: Protocol
) -> Outcome:
    """The outcome of choosing among candidates inside each fold; `scored` has the candidates of each repeat.

    Raises `LRP4RAGError` where there are several candidates and one has no inner scores.
    """
    probabilities = np.full((protocol.repeats, len(labels)), np.nan)
    chosen = []
    for repeat, candidates in enumerate(scored):
        if len(candidates) > 1 and not all(len(each.inner) for each in candidates):
            raise LRP4RAGError("candidates that are chosen among need scores inside the folds")
        for k, split in enumerate(_folds(protocol, labels, groups, repeat)):
            best = max(candidates, key=lambda each: _worth(each, k, split, labels, protocol))
            chosen.append(best.label)
            probabilities[repeat, split.test] = _probability(best, k, split, labels)
    return Outcome(probabilities, probabilities >= THRESHOLD, tuple(chosen))


def uncalibrated(repeats: Sequence[FoldScores]) -> Outcome:
    """The outcome of one candidate, scored in each repeat, that decides as it does by itself."""
    first, scores = repeats[0], np.stack([repeat.scores for repeat in repeats])
    probabilities = scores if first.cut else expit(scores)
    return Outcome(np.asarray(probabilities), scores > first.cut, (first.label,) * len(repeats))


def _folds(protocol: Protocol, labels: Labels, groups: Groups, repeat: int) -> list[Split]:
    return [split for split in _splits(protocol, labels.tobytes(), tuple(groups)) if split.repeat == repeat]


@lru_cache(maxsize=16)
def _splits(protocol: Protocol, labels: bytes, groups: tuple[str, ...]) -> list[Split]:
    """Kept, since stratifying hundreds of groups takes as long as a fit, and candidates share their folds."""
    everything = np.ones(len(groups), dtype=bool)
    return splits(protocol, np.frombuffer(labels, dtype=bool), np.array(groups), everything, everything)[0]


@lru_cache(maxsize=64)
def _inner_folds(labels: bytes, groups: tuple[str, ...], seed: int) -> Folds:
    return grouped_folds(np.frombuffer(labels, dtype=bool), np.array(groups), CALIBRATION_FOLDS, seed)


def _scored(
    candidate: Candidate, labels: Labels, groups: Groups, train: NDArray[np.intp], test: NDArray[np.intp]
) -> tuple[Scores, float]:
    inputs = candidate.inputs
    model = fit(candidate.estimator, inputs[train], labels[train], groups[train])
    return margin_of(model, inputs[test])


def _worth(scored: FoldScores, fold: int, split: Split, labels: Labels, protocol: Protocol) -> float:
    if not len(scored.inner):
        return 0.0
    inner = scored.inner[fold, split.train]
    return worth(protocol.scoring, labels[split.train], inner, scored.cut, calibrated=not scored.probable)


def _probability(scored: FoldScores, fold: int, split: Split, labels: Labels) -> Scores:
    scores = scored.scores[split.test]
    if scored.probable:
        return np.asarray(expit(scores))
    sigmoid = Sigmoid.fit(scored.inner[fold, split.train], labels[split.train])
    return np.asarray(sigmoid.predict(scores))
