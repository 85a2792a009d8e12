"""Evaluation: a trained detector on labelled examples that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrp4rag.classifiers.card import Card, Metrics
from lrp4rag.classifiers.detector import Detector
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments.extract import Extraction
from lrp4rag.experiments.protocol import groups_of, labels_of
from lrp4rag.experiments.statistics import RESAMPLES, intervals


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Metrics per generator (and "all" where there are several), and each row's probability."""

    metrics: dict[str, Metrics]
    rows: dict[str, int]
    hallucinated: dict[str, int]
    probabilities: dict[str, float]
    seen: int
    failures: dict[str, str]


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
    detector: Detector,
    examples: Sequence[Example],
    extraction: Extraction,
    *,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """Run the detector over what extraction left in its store."""
    rows = [example for example in examples if example.id not in extraction.failures]
    if not rows:
        raise InputError("no example could be replayed")
    probabilities = detector.predict_proba([extraction.store.read(row) for row in rows])
    labels, groups = labels_of(rows), groups_of(rows)
    generators = np.array([row.generator or "unknown" for row in rows])
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
        probabilities={row.id: float(p) for row, p in zip(rows, probabilities, strict=True)},
        seen=len(seen_examples(detector.card, rows)),
        failures=extraction.failures,
    )
