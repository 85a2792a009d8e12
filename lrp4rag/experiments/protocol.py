"""Grouped cross-validation: every row is scored by a model that saw no row of its source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import fit_calibrated, grouped_folds
from lrp4rag.classifiers.card import Evidence, Metrics
from lrp4rag.classifiers.features import Features
from lrp4rag.classifiers.localise import smoothed, token_threshold
from lrp4rag.example import Example
from lrp4rag.experiments.controls import CONTROLS, FLAG_EVERYTHING
from lrp4rag.experiments.statistics import (
    RESAMPLES,
    Labels,
    Scores,
    bootstrap,
    response_metrics,
    token_metrics,
)
from lrp4rag.generator.encoding import tokens_in
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.progress import track

FOLDS, SEED = 5, 0


def cross_validate(
    examples: Sequence[Example],
    relevances: Sequence[Relevance],
    *,
    features: Features,
    classifier: str,
    threshold: float = 0.5,
    resamples: int = RESAMPLES,
) -> Evidence:
    """Metrics of a detector, of the controls beside it, and of its suspect tokens.

    Features are given; settings, calibration and the token threshold come from the training rows of
    each fold. Whoever tries several features and keeps the best has chosen by looking at the result.
    """
    labels, groups = labels_of(examples), groups_of(examples)
    folds = grouped_folds(labels, groups, FOLDS, SEED)
    inputs = {"detector": features(relevances)}
    inputs |= {name: control(examples, relevances, features) for name, control in CONTROLS.items()}
    results: dict[str, Metrics] = {}
    for name in track(inputs, len(inputs), "cross-validating"):
        scores = _out_of_fold(classifier, inputs[name], labels, groups, folds)
        results[name] = intervals(labels, scores, groups, threshold, resamples)
    results[FLAG_EVERYTHING] = intervals(labels, np.ones(len(labels)), groups, threshold, resamples)
    return Evidence(
        protocol=(
            f"{FOLDS}-fold cross-validation stratified by label and grouped by source, "
            f"seed {SEED}; 95 % bootstrap intervals over sources, {resamples} resamples"
        ),
        metrics=results.pop("detector"),
        controls=results,
        tokens=_tokens(examples, relevances, groups, folds, resamples),
    )


def labels_of(examples: Sequence[Example]) -> Labels:
    return np.array([bool(example.hallucinated) for example in examples])


def groups_of(examples: Sequence[Example]) -> NDArray[np.str_]:
    return np.array([example.source for example in examples])


def token_flags(example: Example, relevance: Relevance) -> Labels:
    """Which response tokens lie in a labelled span."""
    spans = [(label.start, label.end) for label in example.labels or ()]
    return tokens_in(relevance.encoded.response_offsets, spans)


def intervals(
    labels: Labels, scores: Scores, groups: NDArray[np.str_], threshold: float, resamples: int
) -> Metrics:
    """Response metrics with bootstrap intervals."""
    return bootstrap(
        lambda rows: response_metrics(labels[rows], scores[rows], threshold), groups, resamples=resamples
    )


def _out_of_fold(
    classifier: str,
    vectors: NDArray[np.float64],
    labels: Labels,
    groups: NDArray[np.str_],
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
) -> Scores:
    scores = np.full(len(labels), np.nan)
    for train, test in folds:
        model = fit_calibrated(classifier, vectors[train], labels[train], groups[train])
        scores[test] = model.predict(vectors[test])
    return scores


def _tokens(
    examples: Sequence[Example],
    relevances: Sequence[Relevance],
    groups: NDArray[np.str_],
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    resamples: int,
) -> Metrics:
    flags = [token_flags(*pair) for pair in zip(examples, relevances, strict=True)]
    scores = [-smoothed(relevance.total) for relevance in relevances]
    suspect = [np.zeros(0, dtype=bool)] * len(flags)
    for train, test in folds:
        threshold = token_threshold([relevances[k] for k in train], [flags[k] for k in train])
        for k in test:
            suspect[k] = -scores[k] < threshold

    def metrics(rows: NDArray[np.intp]) -> dict[str, float]:
        parts = ([part[k] for k in rows] for part in (flags, scores, suspect))
        return token_metrics(*(np.concatenate(part) for part in parts))

    # Each of these ranks every token of the data, so a tenth of the resamples must do.
    return bootstrap(metrics, groups, resamples=max(resamples // 10, 20))
