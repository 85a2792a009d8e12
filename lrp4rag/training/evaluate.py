"""Evaluation: a trained detector on labelled examples that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from lrp4rag.classifiers.card import Card, Metrics
from lrp4rag.classifiers.decision import in_marked_sentences
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.model import Assessment
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

    `abstained` counts the rows without a verdict, which are judged by their probability all the same;
    `localisation` is of a token detector, with controls that are cross-validated on these very rows, and
    None where there are too few sources for that.
    """

    metrics: dict[str, Metrics]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    probabilities: dict[str, float]
    seen: int
    failures: dict[str, str]
    abstained: int = 0
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
) -> Evaluation:
    """Run the detector over what extraction left in its store."""
    kept = tuple(example for example in examples if example.id not in extraction.failures)
    if not kept:
        raise InputError("no example could be replayed")
    rows = Rows(extraction.store, kept)
    assessed, abstained = [], 0
    for record in track(stored_records(rows, detector.needs), len(rows), "judging responses"):
        assessed.append(detector.assess(record))
        abstained += any(one.decides for one in unlike(detector.card.domain, record))
    probabilities = np.array([one.probability for one in assessed])
    labels, groups = labels_of(kept), groups_of(kept)
    generators = rows.generators
    parts = {name: generators == name for name in sorted(set(generators))}
    if len(parts) > 1:
        parts["all"] = np.ones(len(rows), dtype=bool)
    threshold = detector.card.threshold
    return Evaluation(
        metrics={
            name: intervals(labels[part], probabilities[part], groups[part], threshold, resamples)
            for name, part in parts.items()
        },
        rows={name: int(part.sum()) for name, part in parts.items()},
        hallucinated={name: int(labels[part].sum()) for name, part in parts.items()},
        probabilities={row.id: float(p) for row, p in zip(kept, probabilities, strict=True)},
        seen=len(seen_examples(detector.card, kept)),
        failures=extraction.failures,
        abstained=abstained,
        localisation=_located(assessed, rows, detector.card.threshold, resamples),
    )


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
