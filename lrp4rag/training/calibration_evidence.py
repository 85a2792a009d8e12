"""How far probabilities can be trusted: at other prevalences, and of responses of other lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import CalibrationEvidence, Interval, LengthEvidence
from lrp4rag.classifiers.prevalence import FEWEST, PREVALENCES, at_prevalence, estimated_prevalence
from lrp4rag.training.metrics import RESAMPLES, Draws, intervals_of, share, weighted_metrics

Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]
Groups = NDArray[np.str_]

LENGTHS = 3


def calibration(
    labels: Labels,
    probabilities: Scores,
    trained: float,
    groups: Groups,
    *,
    generator_known: bool,
    resamples: int = RESAMPLES,
) -> Iterator[CalibrationEvidence]:
    """By prevalence, of probabilities (R,) that hold where a part `trained` is hallucinated: faithful or
    hallucinated responses are drawn less often. A prevalence for which too few remain is left out."""
    random = np.random.default_rng(0)
    for prevalence in PREVALENCES:
        rows = _drawn(labels, prevalence, random)
        if len(rows) < FEWEST:
            continue
        truth, given, among = labels[rows], probabilities[rows], groups[rows]
        error = partial(_error, truth, among, resamples)
        yield CalibrationEvidence(
            prevalence=prevalence,
            generator_known=generator_known,
            as_it_is=error(given),
            given=error(at_prevalence(given, trained, prevalence)),
            estimated=error(at_prevalence(given, trained, estimated_prevalence(given, trained))),
        )


def _drawn(labels: Labels, prevalence: float, random: np.random.Generator) -> NDArray[np.intp]:
    """As many rows as there are with that part of hallucinated ones."""
    bad, good = np.flatnonzero(labels), np.flatnonzero(~labels)
    total = min(len(bad) / prevalence, len(good) / (1 - prevalence))
    count = int(total * prevalence), int(total * (1 - prevalence))
    drawn = [
        random.choice(rows, number, replace=False) for rows, number in zip((bad, good), count, strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def _error(labels: Labels, groups: Groups, resamples: int, probabilities: Scores) -> Interval:
    """Expected calibration error, of ten bins."""
    metrics = partial(weighted_metrics, labels, probabilities, probabilities >= 0.5)
    return intervals_of(Draws.of(groups, resamples).values(metrics))["ece"]


def alarms_by_length(
    lengths: NDArray[np.intp], labels: Labels, flagged: Labels, groups: Groups, *, resamples: int = RESAMPLES
) -> Iterator[LengthEvidence]:
    """Of thirds of the faithful responses, by their numbers of tokens (R,)."""
    faithful = np.flatnonzero(~labels)
    for rows in np.array_split(faithful[np.argsort(lengths[faithful], kind="stable")], LENGTHS):
        if len(rows):
            yield LengthEvidence(
                low=int(lengths[rows].min()),
                high=int(lengths[rows].max()),
                responses=len(rows),
                flagged=share(flagged[rows], groups[rows], resamples=resamples),
            )
