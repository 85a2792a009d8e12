"""Metrics of a binary detector (positive: hallucinated), with bootstrap intervals over sources.

A bootstrap draw gives every row a weight: how often its source was drawn. Metrics are computed for all
draws at once, as sums of weights, so that a thousand resamples cost about as much as a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.example import Example
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.training.validation import Outcome
from lrp4rag.util.sentences import sentences_in

Labels = NDArray[np.bool_]
Flags = NDArray[np.bool_]
Spans = Sequence[tuple[int, int]]
Scores = NDArray[np.float64]
Values = dict[str, NDArray[np.float64]]

RESAMPLES = 1000
LEVEL = 0.95
UNDEFINED = Interval(value=None, low=None, high=None)
CALIBRATION_BINS = 10
# Elements of one block of weights: what is computed from it stays in the processor's cache.
BLOCK = 1_000_000


def intervals(
    labels: Labels,
    scores: Scores,
    groups: NDArray[np.str_],
    threshold: float,
    resamples: int = RESAMPLES,
) -> Metrics:
    """Measure responses by one probability for every row."""
    draws = Draws.of(groups, resamples)
    return intervals_of(draws.values(partial(weighted_metrics, labels, scores, scores >= threshold)))


def token_intervals(
    labels: Labels,
    scores: Scores,
    flagged: Labels,
    groups: NDArray[np.str_],
    resamples: int = RESAMPLES,
) -> Metrics:
    """Measure tokens; `groups` are the sources of the tokens' responses, which are drawn whole."""
    draws = Draws.of(groups, resamples)
    return intervals_of(draws.values(partial(weighted_token_metrics, labels, scores, flagged)))


def outcome_metrics(
    outcome: Outcome, labels: Labels, groups: NDArray[np.str_], *, resamples: int = RESAMPLES, seed: int = 0
) -> Metrics:
    """Measure responses by an outcome: the mean of its repeats, with the interval of a single one.

    The draws of all repeats make one distribution, so that intervals are wider where repeats disagree.
    Averaging repeats inside each draw would narrow them instead, most where there is nothing to learn.
    They hold for the models as fitted: they leave out what other training rows would change.
    """
    return intervals_of(outcome_draws(outcome, labels, Draws.of(groups, resamples, seed)))


def ratios(
    counts: Mapping[str, tuple[NDArray[np.integer], NDArray[np.integer]]],
    groups: NDArray[np.str_],
    *,
    resamples: int = RESAMPLES,
) -> Metrics:
    """Divide sums over R rows, (above, below) by name, each (R,); undefined where all below are 0."""

    def quotients(weights: Scores) -> Values:
        return {name: (weights @ above) / (weights @ below) for name, (above, below) in counts.items()}

    with np.errstate(divide="ignore", invalid="ignore"):
        return intervals_of(Draws.of(groups, resamples).values(quotients))


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of groups with replacement: how often each group is in each, (1 + resamples, groups), and
    the group of each row (R,). The first draw is the data itself, where every count is 1."""

    counts: NDArray[np.int16]
    group_of: NDArray[np.intp]

    @classmethod
    def of(cls, groups: NDArray[np.str_], resamples: int, seed: int = 0) -> Draws:
        _, group_of = np.unique(groups, return_inverse=True)
        number = int(group_of.max()) + 1
        picks = np.random.default_rng(seed).integers(number, size=(resamples, number))
        drawn = [np.bincount(pick, minlength=number) for pick in picks]
        return cls(np.array([np.ones(number), *drawn], dtype=np.int16), group_of)

    def weights(self) -> Iterator[Scores]:
        """Yield the weight of each row in each draw, a block of draws at a time: (draws, R)."""
        size = max(BLOCK // len(self.group_of), 1)
        for start in range(0, len(self.counts), size):
            yield self.counts[start : start + size, self.group_of].astype(np.float64)

    def values(self, metrics: Callable[[Scores], Values]) -> Values:
        """Compute `metrics` of the weights (W, R), for all draws: name -> (draws,)."""
        return _joined(map(metrics, self.weights()), np.concatenate)


def weighted_metrics(labels: Labels, probabilities: Scores, flagged: Labels, weights: Scores) -> Values:
    """Measure responses under each of W weightings of R rows, (W, R): name -> (W,)."""
    return {
        **weighted_token_metrics(labels, probabilities, flagged, weights),
        "ece": _calibration_error(labels, probabilities, weights),
    }


def weighted_token_metrics(labels: Labels, scores: Scores, flagged: Labels, weights: Scores) -> Values:
    """Compute metrics that need no probabilities, under each of W weightings (W, R): name -> (W,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {**ranking(labels, scores, weights), **_decisions(labels, flagged, weights)}


def outcome_draws(outcome: Outcome, labels: Labels, draws: Draws) -> Values:
    """Measure each repeat and draw, (repeats, draws) each."""
    repeats = (
        draws.values(partial(weighted_metrics, labels, probabilities, flagged))
        for probabilities, flagged in zip(outcome.probabilities, outcome.flagged, strict=True)
    )
    return _joined(repeats, np.stack)


def _joined(values: Iterable[Values], join: Callable[[list[Scores]], Scores]) -> Values:
    values = list(values)
    return {name: join([each[name] for each in values]) for name in values[0]}


def intervals_of(draws: Values, level: float = LEVEL) -> Metrics:
    """Return the value of each metric and its percentile interval, by default at 95 %.

    Draws are (D,), or (repeats, D): the first is the value, the others its distribution.
    """
    return {
        name: _interval(float(values[..., 0].mean()), values[..., 1:].ravel(), level, centred=name == "ece")
        for name, values in draws.items()
    }


def _interval(value: float, drawn: NDArray[np.float64], level: float, *, centred: bool) -> Interval:
    """`centred`: a mean of distances is larger in every resample, whose noise adds to it. That surplus is
    taken off again, for else the interval could lie above the value."""
    defined = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or not len(defined):
        return UNDEFINED
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    if centred:
        surplus = defined.mean() - value
        # A difference of two errors may be negative, an error may not.
        low, high = low - surplus, high - surplus
        low = max(low, 0.0) if value >= 0 and (defined >= 0).all() else low
    return Interval(value=value, low=float(low), high=float(high))


def ranking(labels: Labels, scores: Scores, weights: Scores) -> Values:
    """Compute AUROC (a tie is half a success) and average precision (a step at every distinct score)."""
    order = np.argsort(-scores, kind="stable")
    ties = np.flatnonzero(np.diff(scores[order], prepend=np.inf))
    sorted_weights, sorted_labels = weights[:, order], labels[order]
    hits = np.add.reduceat(sorted_weights * sorted_labels, ties, axis=1)
    alarms = np.add.reduceat(sorted_weights * ~sorted_labels, ties, axis=1)
    hits_so_far, alarms_so_far = np.cumsum(hits, axis=1), np.cumsum(alarms, axis=1)
    positive, negative = hits_so_far[:, -1], alarms_so_far[:, -1]
    below = (hits * (negative[:, None] - alarms_so_far + alarms / 2)).sum(1)
    flagged = hits_so_far + alarms_so_far
    precision = np.divide(hits_so_far, flagged, out=np.zeros_like(flagged), where=flagged > 0)
    auroc, auprc = below / (positive * negative), (hits * precision).sum(1) / positive
    return {"auroc": auroc, "auprc": np.where(negative > 0, auprc, np.nan)}


def _decisions(labels: Labels, flagged: Labels, weights: Scores) -> Values:
    counts = (labels & flagged, ~labels & flagged, labels & ~flagged, ~labels & ~flagged)
    hits, alarms, misses, passed = (weights @ which for which in counts)
    recall, specificity = hits / (hits + misses), passed / (passed + alarms)
    return {
        "balanced_accuracy": (recall + specificity) / 2,
        "accuracy": (hits + passed) / weights.sum(1),
        "precision": hits / (hits + alarms),
        "recall": recall,
        "f1": 2 * hits / (2 * hits + alarms + misses),
    }


def _calibration_error(labels: Labels, probabilities: Scores, weights: Scores) -> NDArray[np.float64]:
    members = bins_of(probabilities, CALIBRATION_BINS)[:, None] == np.arange(CALIBRATION_BINS)
    gaps = weights @ ((labels - probabilities)[:, None] * members)
    error: NDArray[np.float64] = np.abs(gaps).sum(1) / weights.sum(1)
    return error


def bins_of(probabilities: Scores, bins: int) -> NDArray[np.intp]:
    return np.minimum((probabilities * bins).astype(np.intp), bins - 1)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Counts of one response: characters (or sentences) that are marked, annotated, and both."""

    marked: int
    annotated: int
    both: int


def characters(marked: Spans, annotated: Spans, length: int) -> Overlap:
    """Count characters of a response of `length`; a character that several spans have counts once."""
    return sentences(_mask(marked, length), _mask(annotated, length))


def sentences(marked: Flags, annotated: Flags) -> Overlap:
    """Count a response's sentences; see `annotated_sentences`."""
    return Overlap(int(marked.sum()), int(annotated.sum()), int((marked & annotated).sum()))


def annotated_sentences(example: Example, sentences: Spans | None = None) -> Flags:
    """Say which of the response's `sentences`, by default those of `sentences_in`, share a character with an
    annotated span."""
    spans = [(label.start, label.end) for label in example.labels or ()]
    return tokens_in(sentences_in(example.response or "") if sentences is None else sentences, spans)


def overlap_metrics(
    overlaps: Sequence[Overlap], groups: NDArray[np.str_], *, resamples: int = RESAMPLES
) -> Metrics:
    """Compute precision, recall and F1 over all characters (or sentences) together, with intervals over
    sources.

    The definition of RAGTruth's span-level detection (arXiv 2401.00396) and LettuceDetect's
    (arXiv 2502.17125): counts are summed over responses before they are divided.
    """
    marked, annotated, both = np.array([astuple(overlap) for overlap in overlaps]).T
    quotients = {
        "precision": (both, marked),
        "recall": (both, annotated),
        "f1": (2 * both, marked + annotated),
    }
    return ratios(quotients, groups, resamples=resamples)


def _mask(spans: Spans, length: int) -> Flags:
    mask = np.zeros(length, dtype=bool)
    for start, end in spans:
        mask[start:end] = True
    return mask
