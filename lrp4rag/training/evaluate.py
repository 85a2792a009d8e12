"""Evaluation: a trained detector on labelled examples that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrp4rag.classifiers.card import Card, Metrics
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.domain import unlike
from lrp4rag.classifiers.token_model import TokenModel, token_probabilities
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.features.parts import STATES
from lrp4rag.features.record import Record
from lrp4rag.progress import track
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import ONCE, groups_of, labels_of
from lrp4rag.training.localisation import Localisation, localisation
from lrp4rag.training.metrics import RESAMPLES, intervals
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Located, tokens_of
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
            "good; --allow-seen evaluates all the same",
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
    if isinstance(detector.model, TokenModel):
        probabilities, abstained, found = _tokens(detector, detector.model, rows, resamples)
    else:
        probabilities, abstained, found = detector.predict_proba(rows.relevances), 0, None
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
        localisation=found,
    )


def _tokens(
    detector: FittedDetector, model: TokenModel, rows: Rows, resamples: int
) -> tuple[np.ndarray, int, Localisation | None]:
    """Probabilities of responses, how many are unlike the training data, and what was located."""
    reading, judged, probabilities, abstained = model.reading, [], [], 0
    records = rows.records(states=STATES in model.needs)
    for record in track(records, len(rows), "judging responses"):
        _require(detector, record)
        judged.append(model.judge_tokens(record))
        probabilities.append(reading.probability(judged[-1].alone, record.generator))
        abstained += any(one.decides for one in unlike(detector.card.domain, record))
    tokens = tokens_of(rows, {})
    every = np.concatenate([one.among for one in judged])
    of_tokens, verdicts = token_probabilities(every), np.array(probabilities)
    located = Located(
        np.concatenate([one.alone for one in judged]),
        every,
        of_tokens >= reading.token_threshold,
        reading.in_marked_sentences(of_tokens, tokens.sentence),
        Outcome(verdicts[None], verdicts[None] >= detector.card.threshold),
    )
    try:
        found = localisation(rows, tokens, located, ONCE, resamples=resamples)
    except InputError:  # controls learn from these rows, and there are too few sources
        found = None
    return verdicts, abstained, found


def _require(detector: FittedDetector, record: Record) -> None:
    relevance = record.relevance
    detector.require(relevance.reader, relevance.composite, relevance.target)
