"""Training: labelled examples in, a detector with its cross-validated card out: metrics with intervals,
beside those of the controls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.alarms import text_units, units
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.card import AlarmInput, Card, Evidence, GeneratorEvidence, Metrics, Training
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.operating import FEW_ALARMS
from lrp4rag.classifiers.vectors import Features
from lrp4rag.example import Example
from lrp4rag.features.blocks import Block, reads_comparer
from lrp4rag.features.parts import READING
from lrp4rag.features.units import smoothed
from lrp4rag.reader.comparer import EntailmentModel, bundled_comparer
from lrp4rag.training.comparing import entailments_of
from lrp4rag.training.controls import Control, constant, length, novel_words, on_relevance
from lrp4rag.training.corpus import ANNOTATED, MADE, Corpus
from lrp4rag.training.extract import Extraction
from lrp4rag.training.folds import HONEST, ONCE, Protocol, groups_of, labels_of, splits
from lrp4rag.training.localisation import ALL, CLASSIFIER, localisation, response_outcomes
from lrp4rag.training.metrics import RESAMPLES, outcome_metrics, token_intervals
from lrp4rag.training.rows import Rows, TextRows
from lrp4rag.training.token_detector import fit_detector
from lrp4rag.training.token_folds import TokenPredictions, cross_validate_tokens
from lrp4rag.training.tokens import Tokens, key_of_block, require_sources, tokens_of, tokens_on_disk
from lrp4rag.training.vector_detector import fit_vector_detector, token_threshold
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.hashes import hash_of


def vector_evidence(
    rows: Rows, features: Features, classifier: str, resamples: int = RESAMPLES, jobs: int = 1
) -> Evidence:
    """Cross-validate a detector of vectors and the controls beside it.

    Features are given; settings, calibration and the token threshold come from the training rows of
    each fold. Whoever tries several features and keeps the best has chosen by looking at the result.
    """
    protocol = replace(HONEST, repeats=1, mode=features.mode, lengths=(features.length,))
    reads: dict[str, Any] = {"classifier": classifier, "features": [features]}
    candidates: dict[str, Control] = {
        "detector": partial(on_relevance, **reads),
        "length only": length,
        "constant relevance (interpolate)": partial(constant, **reads, mode="interpolate"),
        "constant relevance (zeros)": partial(constant, **reads, mode="zeros"),
        "novel words": novel_words,
    }
    results = {
        name: outcome_metrics(outcome, rows.labels, rows.groups, resamples=resamples)
        for name, outcome in response_outcomes(rows, protocol, candidates, jobs, "cross-validating").items()
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
    of_annotated = {CLASSIFIER: predictions.take(tokens, annotated)}
    located = localisation(
        rows.select(annotated), tokens.take(annotated), of_annotated, ONCE, resamples=resamples, jobs=jobs
    )
    generators = {
        name: GeneratorEvidence(
            rows=located.rows[name],
            hallucinated=located.hallucinated[name],
            metrics=responses.pop(CLASSIFIER),
            controls=responses,
            located=located.lines[name],
        )
        for name, responses in located.responses.items()
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


CACHE = "training"
"""The folder of a store with features and finished folds."""


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A model, its evidence, and the cross-validated `probabilities` of the rows (R,), where it was judged
    once on each."""

    model: Model
    evidence: Evidence
    probabilities: NDArray[np.float64] | None = None


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
        return Trained(detector, evidence)


@dataclass(frozen=True, slots=True)
class TokenRecipe:
    """An ensemble that scores single tokens by blocks of features of a plain pass; its alarms read a
    comparer too, where a block does."""

    blocks: dict[str, Block]

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it is computed from."""
        return (READING,)

    def require_enough(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` for too few sources to fold, and where the comparer is not there, before the
        examples are read."""
        if reads_comparer(self.blocks.values()):
            bundled_comparer()
        require_sources(len({example.source for example in examples if example.labels}), "annotated")
        require_sources(len({example.source for example in examples}), "other")

    def train(self, rows: Rows, corpus: Corpus, resamples: int, jobs: int) -> Trained:
        """Learn from the whole corpus, and judge its annotated rows and further sets.

        Features and finished folds are kept in the store, so that a run that was killed resumes.
        """
        cache = rows.store.folder / CACHE
        if reads_comparer(self.blocks.values()):
            rows = replace(rows, entailments=entailments_of(rows.examples, cache, jobs))
        tokens = self.tokens(rows, corpus, cache)
        keys = {name: key_of_block(rows, block) for name, block in self.blocks.items()}
        return _fitted(rows, corpus, tokens, self.blocks, resamples, jobs, cache=cache, keys=keys)

    def tokens(self, rows: Rows, corpus: Corpus, cache: Path) -> Tokens:
        """Read the features of the rows, which have their entailments where a block reads them, from a folder
        `cache`; missing ones are computed first."""
        entailed = reads_comparer(self.blocks.values())
        tokens = tokens_on_disk(rows, cache, self.blocks, units=partial(units, entailed=entailed))
        # A response that was changed is not as its generator wrote it.
        generators = np.where(corpus.names == MADE, "", tokens.generators)
        return replace(tokens, sets=corpus.names, generators=generators)


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """Alarms that compare the text of a response with the passages, without a reader; what the comparer makes
    of sentences is kept in a folder `store`, if there is one."""

    store: Path | None = None
    needs: tuple[str, ...] = ()

    def require_enough(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` for too few sources to fold, and where the comparer is not there."""
        bundled_comparer()
        TokenRecipe({}).require_enough(examples)

    def train(self, rows: Rows, corpus: Corpus, resamples: int, jobs: int) -> Trained:
        """Learn from the whole corpus, and judge its annotated rows and further sets."""
        with nullcontext(self.store) if self.store else TemporaryDirectory() as folder:
            entailments = entailments_of(rows.examples, Path(folder) / CACHE, jobs)
        rows = replace(rows, entailments=entailments)
        tokens = tokens_of(rows, {}, units=partial(text_units, entailed=True))
        return _fitted(rows, corpus, replace(tokens, sets=corpus.names), {}, resamples, jobs)


def _fitted(
    rows: Rows,
    corpus: Corpus,
    tokens: Tokens,
    blocks: Mapping[str, Block],
    resamples: int,
    jobs: int,
    **resuming: Any,
) -> Trained:
    """Cross-validate, choose the operating points by what came out, and learn from all; `resuming` says where
    finished folds are."""
    predictions = cross_validate_tokens(tokens, ONCE, point=FEW_ALARMS, jobs=jobs, **resuming)
    probabilities, annotated = predictions.outcome.probabilities[0], corpus.numbers(ANNOTATED)
    detector = fit_detector(
        rows, tokens, blocks, probabilities=probabilities, point=FEW_ALARMS, annotated=annotated
    )
    evidence = token_evidence(rows, corpus, tokens.select(()), predictions, resamples, jobs)
    return Trained(detector, evidence, probabilities)


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
    scores: Path | None = None,
) -> Model:
    """Cross-validate, in `jobs` processes, and fit a detector on what extraction left in its store; None for
    a recipe that needs nothing of a reader. In a file `scores` is the cross-validated probability of each
    response, a JSON line each, but for a classifier of vectors, which has several."""
    failures = extraction.failures if extraction else {}
    corpus = corpus.without(failures)
    rows = Rows(extraction.store, corpus.examples) if extraction else TextRows.of(corpus.examples)
    trained = recipe.train(rows, corpus, resamples, jobs)
    if scores is not None and trained.probabilities is not None:
        _write_scores(scores, corpus, trained.probabilities)
    annotated = [corpus.examples[k] for k in corpus.numbers(ANNOTATED)]
    training = Training(
        data_hash=data_hash(corpus.examples),
        generators=dict(sorted(Counter(row.generator or "unknown" for row in annotated).items())),
        failures=len(failures),
        sources=sorted({row.content_hash for row in corpus.examples}),
        command=command,
    )
    card = trained.model.card.model_copy(update={"training": training, "evidence": trained.evidence})
    return replace(trained.model, card=card)


def _write_scores(path: Path, corpus: Corpus, probabilities: NDArray[np.float64]) -> None:
    lines = [
        json.dumps({"id": example.id, "set": str(name), "probability": round(float(probability), 6)})
        for example, name, probability in zip(corpus.examples, corpus.names, probabilities, strict=True)
    ]
    write_atomically(path, "\n".join([*lines, ""]))


def data_hash(examples: Sequence[Example]) -> str:
    """Hash prompts, responses and labels (SHA-256), whatever their order, ids and file."""
    rows = sorted(
        json.dumps([row.prompt, row.response, [[label.start, label.end] for label in row.labels or ()]])
        for row in examples
    )
    return hash_of("\n".join(rows))


def seen_examples(
    card: Card, examples: Sequence[Example], comparer: EntailmentModel | None = None
) -> list[Example]:
    """Return the examples whose question and passages the detector, or its comparer (by default the bundled
    one), was trained on."""
    sources = set(card.training.sources) if card.training else set()
    if isinstance(card.input, AlarmInput) and card.input.comparer:
        sources |= (comparer or bundled_comparer()).seen
    return [example for example in examples if example.content_hash in sources]


def refuse_seen(
    card: Card, examples: Sequence[Example], path: str | Path, comparer: EntailmentModel | None = None
) -> None:
    """Raise `InputError` where the detector, or its comparer, was trained on sources of these examples."""
    trained_on = seen_examples(card, examples, comparer)
    if trained_on:
        raise InputError(
            f"{len(trained_on)} of {len(examples)} examples share question and passages with the "
            f"detector's training data (first: '{trained_on[0].id}'), so its metrics on them would be too "
            "good; leave them out, or allow seen sources",
            path=path,
        )
