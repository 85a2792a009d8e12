"""Transfer between generators: learn from one, judge another, on sources that nobody learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lrp4rag.classifiers.calibration import Contender
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.figures import transfer as figure
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import Part
from lrp4rag.experiments.paper.settings import DEFAULTS, estimator_of
from lrp4rag.training.cache import Cell, Task
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.search import transferred

if TYPE_CHECKING:
    import pandas as pd

CLASSIFIER, VECTOR, LENGTH = "svm", "response", 220
OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Pair:
    """What learning from `train` is worth on `test`."""

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


def transfer(context: Context) -> Transfer:
    names = list(context.parts)
    trains = [*names, OTHERS] if len(names) > 2 else names
    places = [(train, test) for train in trains for test in names]
    cells = [_cell(context, train, test) for train, test in places]
    found = context.cache.all(cells, "transfer")
    return Transfer(tuple(Pair(*place, metrics) for place, metrics in zip(places, found, strict=True)))


def show(result: Transfer) -> Exhibit:
    found: dict[tuple[str, str], Interval] = {
        (pair.train, pair.test): pair.metrics["auroc"] for pair in result.pairs
    }
    return Exhibit(
        {"transfer": figure.draw(found, title="SVM on R_response")},
        {"transfer": _table(result.pairs)},
        {},
    )


def _table(pairs: tuple[Pair, ...]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "train": pair.train,
            "test": pair.test,
            "metric": metric,
            "value": interval.value,
            "low": interval.low,
            "high": interval.high,
        }
        for pair in pairs
        for metric, interval in pair.metrics.items()
    )


def _cell(context: Context, train: str, test: str) -> Cell:
    parts, settings = context.parts, context.settings
    learned = [name for name in parts if (name != test if train == OTHERS else name == train)]
    key: dict[str, Any] = {
        "what": "transfer",
        "train": [parts[name].digest for name in learned],
        "test": parts[test].digest,
        "protocol": asdict(settings.honest),
        "resamples": settings.resamples,
    }
    chosen = {name: parts[name] for name in dict.fromkeys([*learned, test])}
    how = settings.honest, settings.resamples
    return Cell(key, Metrics, partial(_prepare, chosen, learned, test, *how))


def _prepare(
    parts: Mapping[str, Part], learned: list[str], test: str, protocol: Protocol, resamples: int
) -> Task:
    inputs = np.concatenate([part.inputs(VECTOR, LENGTH) for part in parts.values()])
    of = np.concatenate([np.full(len(part), name) for name, part in parts.items()])
    labels = np.concatenate([part.labels for part in parts.values()])
    groups = np.concatenate([part.groups for part in parts.values()])
    settings = DEFAULTS[CLASSIFIER]
    contenders = [Contender(VECTOR, CLASSIFIER, settings, estimator_of(CLASSIFIER, settings), inputs)]
    masks = np.isin(of, learned), of == test
    return partial(_measured, contenders, labels, groups, protocol, masks, resamples)


def _measured(
    contenders: list[Contender],
    labels: np.ndarray,
    groups: np.ndarray,
    protocol: Protocol,
    masks: tuple[np.ndarray, np.ndarray],
    resamples: int,
) -> Metrics:
    train, test = masks
    outcome = transferred(contenders, labels, groups, protocol, train, test)
    return outcome_metrics(outcome, labels[test], groups[test], resamples=resamples)
