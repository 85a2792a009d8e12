"""RAGulator's classifiers of engineered features (arXiv 2411.03920): is a sentence of the response out of its
context? A response's score is the highest of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from experiments.systems.baseline import NOTHING, Fitted, Reading
from experiments.systems.encoders.weights import MINILM_PACKAGE
from experiments.systems.entailment import entailment_of
from experiments.systems.facts import SPANS, Facts, optional
from experiments.systems.ragulator.features import features_of
from experiments.systems.ragulator.labels import SOURCES, LabelledSentences, Source
from experiments.systems.resources import Resources
from experiments.systems.scoring import Calibration, PartScores, split, threshold_of
from lrp4rag.classifiers.calibration import (
    CALIBRATION_FOLDS,
    Candidate,
    chosen,
    fit,
    grouped_folds,
    margin_of,
)
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

Classifier = Literal["random forest", "LightGBM"]

FOREST_TREES, FOREST_DEPTHS = (100, 325, 550, 775, 1000), (1, 2, 3, 4, 5)
BOOSTED_TREES, BOOSTED_DEPTHS, LEAVES, SUBSAMPLES = (60, 100, 200), (2, 4, -1), (4, 10, 31), (0.8, 1.0)
"""Table 5: of LightGBM the depth (-1: no limit), leaves of a tree, and the part of the rows that each learns
from."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ragulator:
    """`classifiers` are candidates on sentences whose labels come from `labels`; calibration and threshold
    come from labelled responses. All learn from rows that the cross-encoder has not seen."""

    facts: Facts
    classifiers: tuple[Classifier, ...]
    labels: Source = "simulated"

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        """Raises `InputError` where there are too few sources, or a library is missing. Where a model was
        asked for labels and too few of its replies can be used, nothing is learned or gets a score."""
        trained = entailment_of(rows, resources)
        encoder, unseen = trained.model, np.flatnonzero(trained.unseen)
        own = rows.select(unseen)
        features = features_of(own.examples, encoder, resources)
        sentences = SOURCES[self.labels](own.examples, features, encoder, resources)
        candidates = candidates_on(self.classifiers, sentences.inputs, resources.seed)
        every = np.arange(len(sentences.labels))
        try:
            best, _ = chosen(candidates, sentences.labels, sentences.groups, every, resources.seed)
        except InputError as error:
            sources = len(set(own.groups))
            if self.labels != "prompted" or sources < CALIBRATION_FOLDS:
                pairs = ", and a simulated pair takes two" if self.labels == "simulated" else ""
                raise InputError(
                    f"{sources} sources are fresh to the cross-encoder{pairs}: {error}; extract more sources"
                ) from error
            unknown = np.full(len(own), np.nan)
            calibration = Calibration.of(unknown, own.labels, own.generators, unseen)

            def silent(rows: Rows, _: Resources) -> Reading:
                return Reading(np.full(len(rows), np.nan))

            return Fitted(NOTHING, None, silent, calibration, None)
        outside = outside_scores(best.estimator, sentences, [one.numbers for one in features], resources.seed)
        parts = [PartScores(one.spans, scores) for one, scores in zip(features, outside, strict=True)]
        model = fit(best.estimator, sentences.inputs, sentences.labels, sentences.groups)

        def read(rows: Rows, resources: Resources) -> Reading:
            features = features_of(rows.examples, encoder, resources)
            inputs = [one.numbers for one in features]
            scores = split(margin_of(model, np.concatenate(inputs))[0], inputs)
            found = [PartScores(one.spans, own) for one, own in zip(features, scores, strict=True)]
            return Reading(response_scores(found), found)

        return Fitted(
            best.label + (f", {len(every)} sentences labelled" if self.labels == "prompted" else ""),
            model,
            read,
            Calibration.of(response_scores(parts), own.labels, own.generators, unseen),
            threshold_of(parts, own.examples),
        )


def candidates_on(
    classifiers: Sequence[Classifier], inputs: NDArray[np.float64], seed: int
) -> list[Candidate]:
    """Every candidate of the grids. Raises `InputError` where LightGBM is wanted and not installed."""
    made = []
    for classifier in classifiers:
        grid = _forests(seed) if classifier == "random forest" else _boosted(seed)
        made += [Candidate("", classifier, settings, model, inputs) for settings, model in grid.items()]
    return made


def outside_scores(
    estimator: Any, sentences: LabelledSentences, inputs: Sequence[NDArray[np.float64]], seed: int
) -> list[Scores]:
    """Scores of each response's sentences (S, 5) by a model that learned from no sentence of its group.

    Raises `InputError` where there are too few groups for folds.
    """
    folds = grouped_folds(sentences.labels, sentences.groups, CALIBRATION_FOLDS, seed)
    fold_of = {group: k for k, (_, test) in enumerate(folds) for group in sentences.groups[test]}
    # No fold learned from a group that has no labelled sentence: any will do.
    places = np.array([fold_of.get(group, 0) for group in sentences.group_of])
    owner = np.repeat(places, [len(one) for one in inputs])
    every, scores = np.concatenate(inputs), np.zeros(len(owner))
    for k, (train, _) in enumerate(folds):
        if (own := owner == k).any():
            model = fit(estimator, sentences.inputs[train], sentences.labels[train], sentences.groups[train])
            scores[own] = margin_of(model, every[own])[0]
    return split(scores, inputs)


def _forests(seed: int) -> dict[str, Any]:
    return {
        f"{trees} trees, depth {depth}": RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        for trees, depth in product(FOREST_TREES, FOREST_DEPTHS)
    }


def _boosted(seed: int) -> dict[str, Any]:
    lightgbm = optional("lightgbm")
    return {
        f"{trees} trees, depth {depth}, {leaves} leaves, {part:g} of the rows": lightgbm.LGBMClassifier(
            n_estimators=trees,
            max_depth=depth,
            num_leaves=leaves,
            subsample=part,
            subsample_freq=1,  # without it, all rows are drawn
            random_state=seed,
            deterministic=True,
            n_jobs=1,
            verbose=-1,
        )
        for trees, depth, leaves, part in product(BOOSTED_TREES, BOOSTED_DEPTHS, LEAVES, SUBSAMPLES)
    }


def response_scores(parts: Sequence[PartScores]) -> Scores:
    """The highest score of a sentence of each response, (R,)."""
    return np.array([one.scores.max() for one in parts])


def _facts(which: str, training: str, asks: bool = False) -> Facts:
    return Facts(
        f"RAGulator ({which})",
        "arXiv 2411.03920",
        "text",
        training,
        "MiniLM (22M), cross-encoder trained in the folds" + ("; the judge's" if asks else ""),
        slow=asks,
        choices=("entailment", "judge") if asks else ("entailment",),
        modules=("lightgbm", "snowballstemmer", MINILM_PACKAGE),
    )


SIMULATED = "simulated pairs; cross-encoder: annotated spans"
RAGULATOR_FOREST = Ragulator(_facts("random forest", SIMULATED), ("random forest",))
RAGULATOR_LIGHTGBM = Ragulator(_facts("LightGBM", SIMULATED), ("LightGBM",))
RAGULATOR_ANNOTATED = Ragulator(_facts("annotated", SPANS), ("random forest", "LightGBM"), "annotated")
RAGULATOR_PROMPTED = Ragulator(
    _facts("prompted", "a model's labels; cross-encoder: annotated spans", asks=True),
    ("random forest", "LightGBM"),
    "prompted",
)
