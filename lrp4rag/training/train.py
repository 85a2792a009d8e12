"""Training: labelled examples in, a detector with its cross-validated card out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lrp4rag.classifiers.alarms import text_units
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import Evidence, Training
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.operating import FEW_ALARMS
from lrp4rag.classifiers.vectors import Features
from lrp4rag.example import Example
from lrp4rag.features.blocks import Block
from lrp4rag.features.parts import READING
from lrp4rag.training.corpus import ANNOTATED, MADE, Corpus
from lrp4rag.training.evidence import token_evidence, vector_evidence
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import HONEST, ONCE, groups_of, labels_of
from lrp4rag.training.metrics import RESAMPLES
from lrp4rag.training.rows import Rows, TextRows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import cross_validate_tokens
from lrp4rag.training.tokens import require_sources, tokens_of, tokens_on_disk
from lrp4rag.training.vector_detector import fit_vector_detector
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import hash_of

Trained = tuple[Model, Evidence]
CACHE = "training"
"""The folder of a store with features and finished folds."""


@dataclass(frozen=True, slots=True)
class VectorRecipe:
    """A classifier of one vector for each response."""

    features: Features
    classifier: str = "svm"

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it is computed from."""
        return self.features.needs

    def require_enough(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` for too few sources to fold, before the examples are read."""
        _ = grouped_folds(labels_of(examples), groups_of(examples), HONEST.folds, HONEST.seed)

    def train(self, rows: Rows, corpus: Corpus, resamples: int, jobs: int) -> Trained:
        evidence = vector_evidence(rows, self.features, self.classifier, resamples, jobs)
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
    """An ensemble that scores single tokens by blocks of features of a plain pass."""

    blocks: dict[str, Block]

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it is computed from."""
        return (READING,)

    def require_enough(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` for too few sources to fold, before the examples are read."""
        require_sources(len({one.source for one in examples if one.labels}), "annotated")
        require_sources(len({one.source for one in examples}), "other")

    def train(self, rows: Rows, corpus: Corpus, resamples: int, jobs: int) -> Trained:
        """Learn from the whole corpus, and judge its annotated rows and further sets.

        Features and finished folds are kept in the store, so that a run that was killed resumes.
        """
        cache = rows.store.folder / CACHE
        tokens = tokens_on_disk(rows, cache, self.blocks)
        # A response that was changed is not as its generator wrote it.
        generators = np.where(corpus.names == MADE, "", tokens.generators)
        tokens = replace(tokens, sets=corpus.names, generators=generators)
        key = [rows.digest, {name: repr(block) for name, block in self.blocks.items()}]
        found = cross_validate_tokens(tokens, ONCE, point=FEW_ALARMS, cache=cache, key=key, jobs=jobs)
        detector = fit_detector(
            rows,
            tokens,
            self.blocks,
            probabilities=found.outcome.probabilities[0],
            point=FEW_ALARMS,
            annotated=corpus.numbers(ANNOTATED),
        )
        return detector, token_evidence(rows, corpus, tokens.select(()), found, resamples, jobs)


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """Alarms that compare the text of a response with the passages, without a reader."""

    needs: tuple[str, ...] = ()

    def require_enough(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` for too few sources to fold."""
        TokenRecipe({}).require_enough(examples)

    def train(self, rows: Rows, corpus: Corpus, resamples: int, jobs: int) -> Trained:
        """Learn from the whole corpus, and judge its annotated rows and further sets."""
        tokens = replace(tokens_of(rows, {}, units=text_units), sets=corpus.names)
        found = cross_validate_tokens(tokens, ONCE, point=FEW_ALARMS, jobs=jobs)
        detector = fit_detector(
            rows,
            tokens,
            {},
            probabilities=found.outcome.probabilities[0],
            point=FEW_ALARMS,
            annotated=corpus.numbers(ANNOTATED),
        )
        return detector, token_evidence(rows, corpus, tokens, found, resamples, jobs)


Recipe = VectorRecipe | TokenRecipe | TextRecipe


def labelled(examples: Sequence[Example], path: str | Path) -> list[Example]:
    """Return the same examples; raises `InputError` unless each has a response and labels."""
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
    corpus: Corpus,
    extraction: Extraction | None,
    recipe: Recipe,
    *,
    command: str = "",
    resamples: int = RESAMPLES,
    jobs: int = 1,
) -> Model:
    """Cross-validate, in `jobs` processes, and fit a detector on what extraction left in its store; None for
    a recipe that needs nothing of a reader."""
    failures = extraction.failures if extraction else {}
    corpus = corpus.without(failures)
    rows = Rows(extraction.store, corpus.examples) if extraction else TextRows.of(corpus.examples)
    detector, evidence = recipe.train(rows, corpus, resamples, jobs)
    annotated = [corpus.examples[k] for k in corpus.numbers(ANNOTATED)]
    training = Training(
        data_hash=data_hash(corpus.examples),
        generators=dict(sorted(Counter(row.generator or "unknown" for row in annotated).items())),
        failures=len(failures),
        sources=sorted({row.content_hash for row in corpus.examples}),
        command=command,
    )
    card = detector.card.model_copy(update={"training": training, "evidence": evidence})
    return replace(detector, card=card)


def data_hash(examples: Sequence[Example]) -> str:
    """Hash prompts, responses and labels (SHA-256), whatever their order, ids and file."""
    rows = sorted(
        json.dumps([row.prompt, row.response, [[label.start, label.end] for label in row.labels or ()]])
        for row in examples
    )
    return hash_of("\n".join(rows))
