"""The evidence in a detector's card: cross-validated metrics with intervals, beside those of the controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Evidence, GeneratorEvidence, Metrics
from lrp4rag.classifiers.vectors import Features
from lrp4rag.features.units import smoothed
from lrp4rag.training.controls import (
    FLAG_EVERYTHING,
    Candidates,
    constant,
    flag_everything,
    length,
    novel_words,
    on_relevance,
)
from lrp4rag.training.corpus import ANNOTATED, Corpus
from lrp4rag.training.folds import HONEST, ONCE, Protocol, splits
from lrp4rag.training.localisation import ALL, CLASSIFIER, localisation
from lrp4rag.training.metrics import RESAMPLES, outcome_metrics, token_intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import TokenPredictions
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import cross_validated
from lrp4rag.training.vector_detector import token_threshold
from lrp4rag.util.progress import track


def vector_evidence(
    rows: Rows, features: Features, classifier: str, resamples: int = RESAMPLES, jobs: int = 1
) -> Evidence:
    """Cross-validate a detector of vectors and the controls beside it.

    Features are given; settings, calibration and the token threshold come from the training rows of
    each fold. Whoever tries several features and keeps the best has chosen by looking at the result.
    """
    protocol = replace(HONEST, repeats=1, mode=features.mode, lengths=(features.length,))
    candidates_by_name: dict[str, Candidates] = {
        "detector": on_relevance(rows, classifier, [features]),
        "length only": length(rows),
        "constant relevance (interpolate)": constant(rows, classifier, [features], "interpolate"),
        "constant relevance (zeros)": constant(rows, classifier, [features], "zeros"),
        "novel words": novel_words(rows),
    }
    outcomes = {
        name: cross_validated(candidates, rows.labels, rows.groups, protocol, n_jobs=jobs)
        for name, candidates in track(candidates_by_name.items(), len(candidates_by_name), "cross-validating")
    }
    outcomes[FLAG_EVERYTHING] = flag_everything(rows.labels, protocol)
    results = {
        name: outcome_metrics(outcome, rows.labels, rows.groups, resamples=resamples)
        for name, outcome in outcomes.items()
    }
    return Evidence(
        protocol=_words(protocol, resamples),
        metrics=results.pop("detector"),
        controls=results,
        tokens=_suspect_tokens(rows, protocol, resamples),
    )


def token_evidence(
    rows: Rows,
    corpus: Corpus,
    tokens: Tokens,
    predictions: TokenPredictions,
    resamples: int = RESAMPLES,
    jobs: int = 1,
) -> Evidence:
    """Measure cross-validated predictions on the annotated rows of a corpus and on its further sets."""
    annotated = corpus.numbers(ANNOTATED)
    part = {CLASSIFIER: predictions.take(tokens, annotated)}
    located = localisation(
        rows.select(annotated), tokens.take(annotated), part, ONCE, resamples=resamples, jobs=jobs
    )
    generators = {
        name: GeneratorEvidence(
            rows=located.rows[name],
            hallucinated=located.hallucinated[name],
            metrics=located.responses[name][CLASSIFIER],
            controls={
                control: metrics_of
                for control, metrics_of in located.responses[name].items()
                if control != CLASSIFIER
            },
            located=lines,
        )
        for name, lines in located.lines.items()
    }
    together = generators.pop(ALL)

    def metrics(numbers: NDArray[np.intp]) -> Metrics:
        outcome = predictions.outcome.select(numbers)
        return outcome_metrics(outcome, rows.labels[numbers], rows.groups[numbers], resamples=resamples)

    return Evidence(
        protocol=_words(ONCE, resamples),
        metrics=together.metrics,
        controls=together.controls,
        tokens=together.located[CLASSIFIER].tokens,
        generators=generators,
        sets={
            name: metrics(numbers)
            for name, numbers in corpus.sets().items()
            if len(set(rows.labels[numbers])) == 2
        },
    )


def _words(protocol: Protocol, resamples: int) -> str:
    return f"{protocol.words}; 95 % bootstrap intervals over sources, {resamples} resamples"


def _suspect_tokens(rows: Rows, protocol: Protocol, resamples: int) -> Metrics:
    relevances, flags = rows.relevances, rows.token_flags
    scores = [-smoothed(row.total) for row in relevances]
    suspect = [np.zeros(0, dtype=bool)] * len(flags)
    everything = np.ones(len(flags), dtype=bool)
    for split in splits(protocol, rows.labels, rows.groups, everything, everything)[0]:
        threshold = token_threshold([relevances[k] for k in split.train], [flags[k] for k in split.train])
        for k in split.test:
            suspect[k] = -scores[k] < threshold
    # Each draw ranks every token of the data, so a tenth of the resamples must do.
    return token_intervals(
        np.concatenate(flags),
        np.concatenate(scores),
        np.concatenate(suspect),
        np.repeat(rows.groups, [len(flag) for flag in flags]),
        resamples=max(resamples // 10, 20),
    )
