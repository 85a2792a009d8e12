"""Transfer between generators: train on one, test on another, on sources that training never saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.cache import Cell, Task
from experiments.figures.results import draw_transfer
from experiments.paper.context import Context, Exhibit, metric_rows
from experiments.paper.settings import DEFAULTS, estimator_of
from experiments.paper.subset import Labels, Subset
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.classifiers.card import Metrics
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import cross_validated

CLASSIFIER, VECTOR, LENGTH = "svm", "response", 220
OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Pair:
    """Metrics on `test` of a classifier trained on `train`."""

    train: str
    test: str
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Transfer:
    pairs: tuple[Pair, ...]

    def of(self, train: str, test: str) -> Metrics:
        return next(pair.metrics for pair in self.pairs if (pair.train, pair.test) == (train, test))

    @property
    def trains(self) -> list[str]:
        return list(dict.fromkeys(pair.train for pair in self.pairs))

    @property
    def tests(self) -> list[str]:
        return list(dict.fromkeys(pair.test for pair in self.pairs))


def measure(context: Context) -> Transfer:
    names = list(context.subsets)
    trains = [*names, OTHERS] if len(names) > 2 else names
    places = [(train, test) for train in trains for test in names]
    found = context.cache.all([_cell(context, *place) for place in places], "transfer")
    return Transfer(tuple(Pair(*place, metrics) for place, metrics in zip(places, found, strict=True)))


def show(result: Transfer) -> Exhibit:
    rows = [row for one in result.pairs for row in metric_rows(one.metrics, train=one.train, test=one.test)]
    aurocs = {(pair.train, pair.test): pair.metrics["auroc"] for pair in result.pairs}
    return Exhibit(
        {"transfer": draw_transfer(aurocs, title="SVM on R_response")}, {"transfer": pd.DataFrame(rows)}
    )


def _cell(context: Context, train: str, test: str) -> Cell:
    subsets, settings = context.subsets, context.settings
    trained = [name for name in subsets if (name != test if train == OTHERS else name == train)]
    key: dict[str, Any] = {
        "what": "transfer",
        "train": [subsets[name].digest for name in trained],
        "test": subsets[test].digest,
        "protocol": asdict(settings.honest),
        "resamples": settings.resamples,
    }
    chosen = {name: subsets[name] for name in dict.fromkeys([*trained, test])}
    how = settings.honest, settings.resamples
    return Cell(key, Metrics, partial(_prepare, chosen, trained, test, *how))


def _prepare(
    subsets: Mapping[str, Subset], trained: list[str], test: str, protocol: Protocol, resamples: int
) -> Task:
    inputs = np.concatenate([subset.inputs(VECTOR, LENGTH) for subset in subsets.values()])
    names = np.concatenate([np.full(len(subset), name) for name, subset in subsets.items()])
    labels = np.concatenate([subset.labels for subset in subsets.values()])
    groups = np.concatenate([subset.groups for subset in subsets.values()])
    settings = DEFAULTS[CLASSIFIER]
    candidate = Candidate(VECTOR, CLASSIFIER, settings, estimator_of(CLASSIFIER, settings), inputs)
    masks = np.isin(names, trained), names == test
    return partial(_measured, candidate, labels, groups, protocol, *masks, resamples)


def _measured(
    candidate: Candidate,
    labels: Labels,
    groups: NDArray[np.str_],
    protocol: Protocol,
    train: Labels,
    test: Labels,
    resamples: int,
) -> Metrics:
    outcome = cross_validated([candidate], labels, groups, protocol, train=train, test=test)
    return outcome_metrics(outcome, labels[test], groups[test], resamples=resamples)
