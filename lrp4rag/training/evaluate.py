"""Evaluation: a trained detector on labelled examples that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.card import Card, Metrics
from lrp4rag.classifiers.decision import in_marked_sentences
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.domain import Unlike, unlike
from lrp4rag.classifiers.model import Assessment
from lrp4rag.classifiers.prevalence import at_prevalence
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.progress import track
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import ONCE, groups_of, labels_of
from lrp4rag.training.localisation import CLASSIFIER, Localisation, localisation
from lrp4rag.training.metrics import RESAMPLES, intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import TokenPredictions
from lrp4rag.training.tokens import stored_records, tokens_of
from lrp4rag.training.validation import Outcome


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics per generator (and "all" where there are several), and each row's probability.

    `abstained` has, by id, what of the rows without a verdict is unlike the training data. `metrics` judge
    them by their probability all the same; `judged` leaves them out, and is empty where there are none.
    `threshold` and `prevalence` (None: as in training) are those that decided. `localisation` is of a token
    detector, with controls that are cross-validated on these very rows, and None where there are too few
    sources for that.
    """

    metrics: dict[str, Metrics]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    probabilities: dict[str, float]
    seen: int
    failures: dict[str, str]
    abstained: dict[str, tuple[Unlike, ...]] = field(default_factory=dict)
    judged: dict[str, Metrics] = field(default_factory=dict)
    threshold: float = 0.5
    prevalence: float | None = None
    localisation: Localisation | None = None


def seen_examples(card: Card, examples: Sequence[Example]) -> list[Example]:
    """The examples whose question and passages the detector was trained on."""
    sources = set(card.training.sources) if card.training else set()
    return [example for example in examples if example.content_hash in sources]


def refuse_seen(card: Card, examples: Sequence[Example], path: str | Path) -> None:
    """Raise `InputError` where the detector was trained on sources of these examples."""
    seen = seen_examples(card, examples)
    if seen:
        raise InputError(
            f"{len(seen)} of {len(examples)} examples share question and passages with the "
            f"detector's training data (first: '{seen[0].id}'), so its metrics on them would be too "
            "good; leave them out, or allow seen sources",
            path=path,
        )


def evaluate(
    detector: FittedDetector,
    examples: Sequence[Example],
    extraction: Extraction,
    *,
    resamples: int = RESAMPLES,
    estimate: bool = False,
) -> Evaluation:
    """Run the detector over what extraction left in its store; with `estimate` at the prevalence that the
    probabilities of these very rows tell, without their labels.

    Raises `InputError` where no example could be replayed, and for too few to estimate from.
    """
    kept = tuple(example for example in examples if example.id not in extraction.failures)
    if not kept:
        raise InputError("no example could be replayed")
    rows = Rows(extraction.store, kept)
    assessed, deciding = list[Assessment](), list[tuple[Unlike, ...]]()
    for record in track(stored_records(rows, detector.needs), len(rows), "judging responses"):
        assessed.append(detector.assess(record))
        found = unlike(detector.card.domain, record)
        deciding.append(tuple(one for one in found if one.decides))
    if estimate:
        detector, assessed = _at_estimate(detector, assessed)
    probabilities = np.array([one.probability for one in assessed])
    labels, groups = labels_of(kept), groups_of(kept)
    generators = rows.generators
    parts = {name: generators == name for name in sorted(set(generators))}
    if len(parts) > 1:
        parts["all"] = np.ones(len(rows), dtype=bool)
    threshold = detector.card.threshold

    def metrics(parts: dict[str, NDArray[np.bool_]]) -> dict[str, Metrics]:
        return {
            name: intervals(labels[part], probabilities[part], groups[part], threshold, resamples)
            for name, part in parts.items()
            if part.any()
        }

    judged = np.array([not why for why in deciding])
    return Evaluation(
        metrics=metrics(parts),
        rows={name: int(part.sum()) for name, part in parts.items()},
        hallucinated={name: int(labels[part].sum()) for name, part in parts.items()},
        probabilities={row.id: float(p) for row, p in zip(kept, probabilities, strict=True)},
        seen=len(seen_examples(detector.card, kept)),
        failures=extraction.failures,
        abstained={row.id: why for row, why in zip(kept, deciding, strict=True) if why},
        judged={} if judged.all() else metrics({name: part & judged for name, part in parts.items()}),
        threshold=threshold,
        prevalence=detector.prevalence,
        localisation=_located(assessed, rows, threshold, resamples),
    )


def _at_estimate(
    detector: FittedDetector, assessed: Sequence[Assessment]
) -> tuple[FittedDetector, list[Assessment]]:
    """The detector at the prevalence that its own probabilities tell, and what it makes of the same rows."""
    probabilities = [one.probability for one in assessed]
    prevalence = detector.estimated_prevalence(probabilities)
    shifted = at_prevalence(probabilities, detector.assumed_prevalence, prevalence)
    return detector.at_prevalence(prevalence), [
        replace(one, probability=float(value)) for one, value in zip(assessed, shifted, strict=True)
    ]


def _located(
    assessed: Sequence[Assessment], rows: Rows, threshold: float, resamples: int
) -> Localisation | None:
    """Of a model that scores tokens, where there are enough sources for the controls to learn from."""
    scores = [one.scores for one in assessed if one.scores is not None]
    marks = assessed[0].marks
    if marks is None or len(scores) < len(assessed):
        return None
    tokens = tokens_of(rows, {})
    log_odds = np.concatenate([one.among for one in scores])
    of_tokens, verdicts = expit(log_odds), np.array([[one.probability for one in assessed]])
    found = TokenPredictions(
        np.concatenate([one.alone for one in scores]),
        log_odds,
        of_tokens >= marks.threshold,
        in_marked_sentences(of_tokens, tokens.sentence, marks.sentence_top, marks.sentence_threshold),
        Outcome(verdicts, verdicts >= threshold),
    )
    try:
        return localisation(rows, tokens, {CLASSIFIER: found}, ONCE, resamples=resamples)
    except InputError:  # too few sources
        return None
