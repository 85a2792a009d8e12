"""Training: labelled examples in, a detector with its cross-validated card out."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lrp4rag.classifiers.card import Training
from lrp4rag.classifiers.detector import Detector
from lrp4rag.classifiers.features import Features
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments.evidence import cross_validate
from lrp4rag.experiments.extract import Extraction
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.statistics import RESAMPLES


def labelled(examples: Sequence[Example], path: str | Path) -> list[Example]:
    """The same examples; raises `InputError` unless each has a response and labels."""
    for example in examples:
        if example.response is None or example.labels is None:
            raise InputError(
                f"example '{example.id}' has no labels; labelled data is needed "
                '("labels": [] for a faithful response)',
                path=path,
                field="labels",
            )
    return list(examples)


def train(
    examples: Sequence[Example],
    extraction: Extraction,
    *,
    features: Features | None = None,
    classifier: str = "svm",
    command: str = "",
    resamples: int = RESAMPLES,
) -> Detector:
    """Cross-validate and fit a detector on what extraction left in its store."""
    features = features or Features()
    kept = tuple(example for example in examples if example.id not in extraction.failures)
    rows = Rows(extraction.store, kept)
    evidence = cross_validate(rows, features=features, classifier=classifier, resamples=resamples)
    detector = Detector.fit(
        rows.relevances,
        rows.labels,
        groups=list(rows.groups),
        token_flags=rows.token_flags,
        features=features,
        classifier=classifier,
    )
    training = Training(
        data_hash=data_hash(kept),
        generators=dict(sorted(Counter(row.generator or "unknown" for row in kept).items())),
        failures=len(extraction.failures),
        sources=sorted({row.content_hash for row in kept}),
        command=command,
    )
    card = detector.card.model_copy(update={"training": training, "evidence": evidence})
    return Detector(detector.estimator, card)


def data_hash(examples: Sequence[Example]) -> str:
    """SHA-256 of prompts, responses and labels, whatever their order, ids and file."""
    rows = sorted(
        json.dumps([row.prompt, row.response, [[label.start, label.end] for label in row.labels or ()]])
        for row in examples
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
