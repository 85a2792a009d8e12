"""The evidence in a detector's card: its cross-validated metrics, the controls', and its suspect tokens'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lrp4rag.classifiers.card import Evidence, GeneratorEvidence, Metrics
from lrp4rag.classifiers.features import Features
from lrp4rag.features.units import smoothed
from lrp4rag.training.controls import CONTROLS, FLAG_EVERYTHING, Setting, flag_everything, relevance
from lrp4rag.training.folds import HONEST, Protocol, splits
from lrp4rag.training.localisation import ALL, CLASSIFIER, Localisation
from lrp4rag.training.metrics import RESAMPLES, outcome_metrics, token_intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome, cross_validated
from lrp4rag.training.vector_detector import token_threshold
from lrp4rag.util.progress import track

SHOWN = ("length only", "constant relevance (interpolate)", "constant relevance (zeros)", "novel words")


def cross_validate(
    rows: Rows,
    *,
    features: Features,
    classifier: str,
    resamples: int = RESAMPLES,
    n_jobs: int = 1,
) -> tuple[Evidence, Outcome]:
    """Metrics of a detector, of the controls beside it, and of its suspect tokens; and its verdicts.

    Features are given; settings, calibration and the token threshold come from the training rows of
    each fold. Whoever tries several features and keeps the best has chosen by looking at the result.
    """
    protocol = replace(HONEST, repeats=1, mode=features.mode, lengths=(features.length,))
    setting = Setting(classifier, (features,))
    makers = {"detector": relevance} | {name: CONTROLS[name].make for name in SHOWN}
    outcomes = {
        name: cross_validated(make(rows, setting), rows.labels, rows.groups, protocol, n_jobs=n_jobs)
        for name, make in track(makers.items(), len(makers), "cross-validating")
    }
    outcomes[FLAG_EVERYTHING] = flag_everything(rows.labels, protocol)
    results = {
        name: outcome_metrics(outcome, rows.labels, rows.groups, resamples=resamples)
        for name, outcome in outcomes.items()
    }
    evidence = Evidence(
        protocol=_words(protocol, resamples),
        metrics=results.pop("detector"),
        controls=results,
        tokens=_tokens(rows, protocol, resamples),
    )
    return evidence, outcomes["detector"]


def located_evidence(found: Localisation, protocol: Protocol, resamples: int) -> Evidence:
    """The evidence of a token detector, by generator and of all responses together."""
    made = {
        name: GeneratorEvidence(
            rows=found.rows[name],
            hallucinated=found.hallucinated[name],
            metrics=found.responses[name][CLASSIFIER],
            controls={way: one for way, one in found.responses[name].items() if way != CLASSIFIER},
            located=lines,
        )
        for name, lines in found.lines.items()
    }
    every = made.pop(ALL)
    return Evidence(
        protocol=_words(protocol, resamples),
        metrics=every.metrics,
        controls=every.controls,
        tokens=every.located[CLASSIFIER].tokens,
        generators=made,
    )


def _words(protocol: Protocol, resamples: int) -> str:
    return f"{protocol.words}; 95 % bootstrap intervals over sources, {resamples} resamples"


def _tokens(rows: Rows, protocol: Protocol, resamples: int) -> Metrics:
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
