"""Training: labelled examples in, a detector with its cross-validated card out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import Evidence, Training
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.features import Features
from lrp4rag.classifiers.operating import DEFAULT_POINT, FEW_ALARMS
from lrp4rag.example import Example
from lrp4rag.features.blocks import Block, blocks_named, parts_of
from lrp4rag.features.parts import READING
from lrp4rag.training.block_evidence import LADDER, block_evidence
from lrp4rag.training.calibration_evidence import alarms_by_length, calibration
from lrp4rag.training.corpus import ANNOTATED, Corpus
from lrp4rag.training.evidence import cross_validate, located_evidence
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import HALVES, HONEST, Protocol, groups_of, labels_of
from lrp4rag.training.former_evidence import Former, former_evidence
from lrp4rag.training.kind_evidence import kind_evidence
from lrp4rag.training.localisation import CLASSIFIER, localisation
from lrp4rag.training.metrics import RESAMPLES, outcome_metrics
from lrp4rag.training.pair_evidence import EVERY, pair_evidence
from lrp4rag.training.pairs import KINDS
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import TokenPredictions
from lrp4rag.training.tokens import Tokens, require_sources
from lrp4rag.training.trials import CrossValidation, Trial
from lrp4rag.training.validation import Outcome
from lrp4rag.training.vector_detector import fit_vector_detector
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import hash_of

UNKNOWN = "generator unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A detector, what it is worth, and the verdicts on annotated rows that this was measured by: those of
    models that did not learn from a row's source."""

    detector: FittedDetector
    evidence: Evidence
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class VectorRecipe:
    """A classifier of one vector for each response."""

    features: Features
    classifier: str = "svm"

    @property
    def needs(self) -> tuple[str, ...]:
        return self.features.needs

    def made_of(self, rows: Rows, resamples: int, jobs: int) -> Made:
        evidence, outcome = cross_validate(
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
        return Made(detector, evidence, outcome)


@dataclass(frozen=True, slots=True)
class TokenRecipe:
    """An ensemble that scores single tokens by blocks of features.

    With `compares`, the card tells also what blocks of plain passes add to hidden states; with `leaves_out`,
    how well minimal pairs are ranked whose kind of fault was not learned from.
    """

    blocks: dict[str, Block]
    compares: bool = False
    leaves_out: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        return parts_of(self.blocks)

    def made_of(self, rows: Rows, resamples: int, jobs: int, corpus: Corpus | None = None) -> Made:
        """Features and finished folds are cached in the store, where a study finds them too.

        Of a `corpus`, whose rows these are, everything is learned from, and the annotated rows are judged;
        what was made of them is judged in pairs.
        """
        plain = self.needs == (READING,)
        trial = Trial(tuple(self.blocks), point=FEW_ALARMS if plain else DEFAULT_POINT)
        ladder = LADDER if self.compares else {}
        others = blocks_named(dict.fromkeys(chain.from_iterable(ladder.values()))) if ladder else {}
        study = CrossValidation.open(rows, rows.store.folder / "study", self.blocks | others, jobs)
        if corpus is not None:
            study = study.of(corpus)
        trials = {CLASSIFIER: trial, UNKNOWN: replace(trial, know_generators=False)}
        results = study.run(trials, "cross-validating")
        shown = np.arange(len(rows)) if corpus is None else corpus.numbers(ANNOTATED)
        detector = fit_detector(
            rows,
            study.tokens.select(self.blocks),
            self.blocks,
            probabilities=results[CLASSIFIER].outcome.probabilities[0],
            point=trial.point,
            annotated=shown,
        )
        halves = self._halves(study, trial, corpus) if self.leaves_out and corpus is not None else None
        evidence = evidence_of(
            detector, rows, study.tokens.select(()), results, study.protocol, corpus, resamples, jobs, halves
        )
        if corpus is not None:
            blocks = block_evidence(
                self._ladder(study, trial, ladder),
                shown,
                rows.labels,
                rows.groups,
                corpus.twins(),
                resamples=resamples,
            )
            evidence = evidence.model_copy(update={"blocks": list(blocks)})
        return Made(detector, evidence, results[CLASSIFIER].outcome.select(shown))

    def _halves(self, study: CrossValidation, trial: Trial, corpus: Corpus) -> dict[str, NDArray[np.float64]]:
        """What `pair_evidence` takes. Two folds, not five: there are as many models to fit as kinds."""
        kinds = {twin.kind for twin in corpus.twins() if not twin.harmless} & set(KINDS)
        trials = {EVERY: trial} | {kind: replace(trial, without=kind) for kind in sorted(kinds)}
        found = replace(study, protocol=HALVES).run(trials, "leaving kinds out")
        return {name: one.outcome.probabilities[0] for name, one in found.items()}

    def _ladder(
        self, study: CrossValidation, trial: Trial, ladder: Mapping[str, tuple[str, ...]]
    ) -> dict[str, Outcome]:
        trials = {name: replace(trial, blocks=blocks) for name, blocks in ladder.items()}
        return {name: one.outcome for name, one in study.run(trials, "comparing blocks").items()}


def evidence_of(
    detector: FittedDetector,
    rows: Rows,
    tokens: Tokens,
    results: Mapping[str, TokenPredictions],
    protocol: Protocol,
    corpus: Corpus | None,
    resamples: int,
    jobs: int,
    halves: Mapping[str, NDArray[np.float64]] | None = None,
) -> Evidence:
    """What the card tells of cross-validated `results`, with generators known (`CLASSIFIER`) and not
    (`UNKNOWN`): of the annotated rows of a `corpus`, whose rows these are, and of its further sets; `halves`
    are for `pair_evidence`."""
    found = results[CLASSIFIER]
    shown = np.arange(len(rows)) if corpus is None else corpus.numbers(ANNOTATED)
    part = {CLASSIFIER: found.take(tokens, shown)}
    taken = tokens.take(shown)
    located = localisation(rows.select(shown), taken, part, protocol, resamples=resamples, jobs=jobs)
    probabilities, flagged = found.outcome.probabilities[0], found.outcome.flagged[0]
    marked = np.split(part[CLASSIFIER].marked, np.flatnonzero(np.diff(taken.owner)) + 1)
    kinds = kind_evidence(rows.select(shown), probabilities[shown], marked, resamples=resamples)
    evidence = located_evidence(located, protocol, resamples).model_copy(update={"kinds": kinds})
    if corpus is None:
        return evidence
    labels, groups = rows.labels[shown], rows.groups[shown]
    return evidence.model_copy(
        update={
            "calibration": [
                one
                for name, result in results.items()
                for one in calibration(
                    labels,
                    result.outcome.probabilities[0][shown],
                    detector.card.prevalence,
                    groups,
                    generator_known=name == CLASSIFIER,
                    resamples=resamples,
                )
            ],
            "lengths": list(
                alarms_by_length(
                    np.bincount(taken.owner), labels, flagged[shown], groups, resamples=resamples
                )
            ),
            "pairs": pair_evidence(
                corpus.twins(), probabilities, flagged, rows.groups, halves=halves, resamples=resamples
            ),
            "sets": {
                name: outcome_metrics(
                    found.outcome.select(numbers),
                    rows.labels[numbers],
                    rows.groups[numbers],
                    resamples=resamples,
                )
                for name, numbers in corpus.sets().items()
                if len(set(rows.labels[numbers])) == 2
            },
        }
    )


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


def require_enough(corpus: Corpus, reads: VectorRecipe | TokenRecipe) -> None:
    """Raise `InputError` where no folds can be made of these rows, before they are read for it."""
    examples = corpus.examples
    if isinstance(reads, VectorRecipe):
        _ = grouped_folds(labels_of(examples), groups_of(examples), HONEST.folds, HONEST.seed)
        return
    for what, sources in (
        ("annotated", {one.source for one in examples if one.labels}),
        ("other", {one.source for one in examples}),
    ):
        require_sources(len(sources), what)


def train(
    corpus: Corpus,
    extraction: Extraction,
    *,
    reads: VectorRecipe | TokenRecipe,
    command: str = "",
    resamples: int = RESAMPLES,
    jobs: int = 1,
    former: Former | None = None,
) -> FittedDetector:
    """Cross-validate, in `jobs` processes, and fit a detector on what extraction left in its store; with a
    `former` detector, whose parts are there too, the card compares both."""
    kept = corpus.without(extraction.failures)
    rows = Rows(extraction.store, kept.examples)
    if isinstance(reads, TokenRecipe):
        made = reads.made_of(rows, resamples, jobs, kept)
    else:
        made = reads.made_of(rows, resamples, jobs)
    evidence, numbers = made.evidence, kept.numbers(ANNOTATED)
    if former is not None:
        beside = former_evidence(former, rows.select(numbers), made.outcome, resamples=resamples)
        evidence = evidence.model_copy(update={"former": beside})
    annotated = [kept.examples[k] for k in numbers]
    training = Training(
        data_hash=data_hash(kept.examples),
        generators=dict(sorted(Counter(row.generator or "unknown" for row in annotated).items())),
        failures=len(extraction.failures),
        sources=sorted({row.content_hash for row in kept.examples}),
        command=command,
    )
    card = made.detector.card.model_copy(update={"training": training, "evidence": evidence})
    return replace(made.detector, card=card)


def data_hash(examples: Sequence[Example]) -> str:
    """SHA-256 of prompts, responses and labels, whatever their order, ids and file."""
    rows = sorted(
        json.dumps([row.prompt, row.response, [[label.start, label.end] for label in row.labels or ()]])
        for row in examples
    )
    return hash_of("\n".join(rows))
