"""Metrics that only the research compares, with the bootstrap of `lrp4rag.training.metrics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.training.metrics import (
    CALIBRATION_BINS,
    RESAMPLES,
    Draws,
    Labels,
    Scores,
    Values,
    bins_of,
    intervals_of,
    outcome_draws,
    ranking,
    ratios,
    weighted_token_metrics,
)
from lrp4rag.training.validation import Outcome


def compare_tokens(
    labels: Labels,
    first: tuple[Scores, Labels],
    second: tuple[Scores, Labels],
    groups: NDArray[np.str_],
    resamples: int = RESAMPLES,
) -> Metrics:
    """`first` less `second`, each the scores and flags of the same tokens, for every token metric, on the
    same draws."""
    draws = Draws.of(groups, resamples)
    ours, theirs = (draws.values(partial(weighted_token_metrics, labels, *one)) for one in (first, second))
    return intervals_of({name: ours[name] - theirs[name] for name in ours})


def compare(
    first: Outcome,
    second: Outcome,
    labels: Labels,
    groups: NDArray[np.str_],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metrics:
    """`first` less `second`, for every metric, on the same draws of the same rows."""
    return compare_parts(first, second, (labels, labels), (groups, groups), resamples=resamples, seed=seed)


def compare_parts(
    first: Outcome,
    second: Outcome,
    labels: Sequence[Labels],
    groups: Sequence[NDArray[np.str_]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metrics:
    """The same for outcomes of different rows, with the labels and groups of each: a source that both have
    is drawn for both together.

    Raises `ValueError` for outcomes of different numbers of repeats.
    """
    if len(first.probabilities) != len(second.probabilities):
        raise ValueError("outcomes to be compared must have as many repeats")
    every = Draws.of(np.concatenate(list(groups)), resamples, seed)
    places = np.split(every.group_of, [len(groups[0])])
    ours, theirs = (
        outcome_draws(outcome, truth, replace(every, group_of=place))
        for outcome, truth, place in zip((first, second), labels, places, strict=True)
    )
    return intervals_of({name: ours[name] - theirs[name] for name in ours})


def auroc_draws(
    outcome: Outcome, labels: Labels, groups: NDArray[np.str_], *, resamples: int = RESAMPLES, seed: int = 0
) -> Scores:
    """AUROC of each repeat under each draw of groups, (repeats, 1 + resamples): the first is of the data. For
    differences of many outcomes of the same rows, which share their draws. NaN where all labels are one."""

    def auroc(scores: Scores, weights: Scores) -> Values:
        with np.errstate(divide="ignore", invalid="ignore"):
            return {"auroc": ranking(labels, scores, weights)["auroc"]}

    draws = Draws.of(groups, resamples, seed)
    return np.stack([draws.values(partial(auroc, scores))["auroc"] for scores in outcome.probabilities])


def bootstrap(
    metrics: Callable[[NDArray[np.intp]], dict[str, float]],
    groups: NDArray[np.str_],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metrics:
    """Any statistic's value and its 95 % percentile interval over resampled groups (sources).

    `metrics` maps row numbers to values, one call for each draw: the functions above are faster for what
    they know. Rows of one group are drawn together.
    """
    draws, rows = Draws.of(groups, resamples, seed), np.arange(len(groups))
    values = [metrics(np.repeat(rows, count[draws.group_of])) for count in draws.counts]
    return intervals_of({name: np.array([value[name] for value in values]) for name in values[0]})


def share(flags: Labels, groups: NDArray[np.str_], *, resamples: int = RESAMPLES) -> Interval:
    """Of R rows that have a flag."""
    counts = {"share": (flags.astype(np.intp), np.ones(len(flags), dtype=np.intp))}
    return ratios(counts, groups, resamples=resamples)["share"]


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """A reliability diagram: per bin between `edges` (bins + 1), the mean probability, the frequency of
    hallucinations (both NaN where the bin is empty), and the number of rows."""

    edges: NDArray[np.float64]
    probability: NDArray[np.float64]
    frequency: NDArray[np.float64]
    count: NDArray[np.intp]


def reliability(labels: Labels, probabilities: Scores, bins: int = CALIBRATION_BINS) -> Reliability:
    """Bin probabilities, (R,) or (repeats, R), against the labels (R,)."""
    truth = np.broadcast_to(labels, probabilities.shape).ravel()
    values = probabilities.ravel()
    places = bins_of(values, bins)
    count = np.bincount(places, minlength=bins)
    with np.errstate(invalid="ignore"):
        return Reliability(
            edges=np.linspace(0, 1, bins + 1),
            probability=np.bincount(places, values, bins) / count,
            frequency=np.bincount(places, truth, bins) / count,
            count=count,
        )
