"""Training: labelled examples in, a detector with its cross-validated card out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lrp4rag.classifiers.card import Evidence, Training
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.features import Features
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.features.blocks import Block, parts_of
from lrp4rag.hashes import hash_of
from lrp4rag.training.evidence import cross_validate, located_evidence
from lrp4rag.training.extract import Extraction
from lrp4rag.training.localisation import CLASSIFIER, localisation
from lrp4rag.training.metrics import RESAMPLES
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.trials import CrossValidation, Trial
from lrp4rag.training.vector_detector import fit_vector_detector


@dataclass(frozen=True, slots=True)
class VectorRecipe:
    """A classifier of one vector for each response."""

    features: Features
    classifier: str = "svm"

    @property
    def needs(self) -> tuple[str, ...]:
        return self.features.needs

    def made_of(self, rows: Rows, resamples: int, jobs: int) -> tuple[FittedDetector, Evidence]:
        evidence = cross_validate(
            rows, features=self.features, classifier=self.classifier, resamples=resamples, n_jobs=jobs
        )
        detector = fit_vector_detector(
            rows.relevances,
            rows.labels,
            groups=list(rows.groups),
            token_flags=rows.token_flags,
            features=self.features,
            classifier=self.classifier,
        )
        return detector, evidence


@dataclass(frozen=True, slots=True)
class TokenRecipe:
    """An ensemble that scores single tokens by blocks of features."""

    blocks: dict[str, Block]

    @property
    def needs(self) -> tuple[str, ...]:
        return parts_of(self.blocks)

    def made_of(self, rows: Rows, resamples: int, jobs: int) -> tuple[FittedDetector, Evidence]:
        """Features and finished folds are cached in the store, where a study finds them too."""
        study = CrossValidation.open(rows, rows.store.folder / "study", self.blocks, jobs)
        found = study.run({CLASSIFIER: Trial(tuple(self.blocks))}, "cross-validating")
        located = localisation(rows, study.tokens, found, study.protocol, resamples=resamples, jobs=jobs)
        evidence = located_evidence(located, study.protocol, resamples)
        probabilities = found[CLASSIFIER].outcome.probabilities[0]
        return fit_detector(rows, study.tokens, self.blocks, probabilities=probabilities), evidence


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
    reads: VectorRecipe | TokenRecipe,
    command: str = "",
    resamples: int = RESAMPLES,
    jobs: int = 1,
) -> FittedDetector:
    """Cross-validate, in `jobs` processes, and fit a detector on what extraction left in its store."""
    kept = tuple(example for example in examples if example.id not in extraction.failures)
    detector, evidence = reads.made_of(Rows(extraction.store, kept), resamples, jobs)
    training = Training(
        data_hash=data_hash(kept),
        generators=dict(sorted(Counter(row.generator or "unknown" for row in kept).items())),
        failures=len(extraction.failures),
        sources=sorted({row.content_hash for row in kept}),
        command=command,
    )
    card = detector.card.model_copy(update={"training": training, "evidence": evidence})
    return replace(detector, card=card)


def data_hash(examples: Sequence[Example]) -> str:
    """SHA-256 of prompts, responses and labels, whatever their order, ids and file."""
    rows = sorted(
        json.dumps([row.prompt, row.response, [[label.start, label.end] for label in row.labels or ()]])
        for row in examples
    )
    return hash_of("\n".join(rows))
