"""The two classifiers of engineered features, and their scores of sentences that they did not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, Contender, fit, grouped_folds, margin_of
from lrp4rag.experiments.systems.extras import extra
from lrp4rag.experiments.systems.ragulator.labelling import Lessons

Classifier = Literal["random forest", "LightGBM"]

FOREST_TREES, FOREST_DEPTHS = (100, 300), (5, 10)
BOOSTING, LEAVES = ((100, 0.1), (300, 0.03)), (7, 31)
"""Trees and learning rate, which go together; leaves of a tree."""

Scores = NDArray[np.float64]


def contenders(classifiers: Sequence[Classifier], inputs: NDArray[np.float64], seed: int) -> list[Contender]:
    """Every candidate of the grids. Raises `InputError` where LightGBM is wanted and not installed."""
    made = []
    for classifier in classifiers:
        grid = _forests(seed) if classifier == "random forest" else _boosted(seed)
        made += [Contender("", classifier, settings, model, inputs) for settings, model in grid.items()]
    return made


def outside_scores(
    estimator: Any, lessons: Lessons, inputs: Sequence[NDArray[np.float64]], seed: int
) -> list[Scores]:
    """Scores of each response's sentences (S, 5) by a model that learned from no sentence of its group.

    Raises `InputError` where there are too few groups for folds.
    """
    folds = grouped_folds(lessons.labels, lessons.groups, CALIBRATION_FOLDS, seed)
    fold_of = {group: k for k, (_, test) in enumerate(folds) for group in lessons.groups[test]}
    # No fold learned from a group that there is no lesson of: any will do.
    places = np.array([fold_of.get(group, 0) for group in lessons.group_of])
    owner = np.repeat(places, [len(one) for one in inputs])
    every, scores = np.concatenate(inputs), np.zeros(len(owner))
    for k, (train, _) in enumerate(folds):
        if (own := owner == k).any():
            model = fit(estimator, lessons.inputs[train], lessons.labels[train], lessons.groups[train])
            scores[own] = margin_of(model, every[own])[0]
    return split(scores, inputs)


def split(values: Scores, like: Sequence[Any]) -> list[Scores]:
    """What was concatenated, in parts as long as those of `like`."""
    return np.split(values, np.cumsum([len(one) for one in like])[:-1])


def _forests(seed: int) -> dict[str, Any]:
    return {
        f"{trees} trees, depth {depth}": RandomForestClassifier(trees, max_depth=depth, random_state=seed)
        for trees, depth in product(FOREST_TREES, FOREST_DEPTHS)
    }


def _boosted(seed: int) -> dict[str, Any]:
    lightgbm = extra("lightgbm")
    return {
        f"{trees} trees, rate {rate}, {leaves} leaves": lightgbm.LGBMClassifier(
            n_estimators=trees,
            learning_rate=rate,
            num_leaves=leaves,
            random_state=seed,
            deterministic=True,
            n_jobs=1,
            verbose=-1,
        )
        for (trees, rate), leaves in product(BOOSTING, LEAVES)
    }
