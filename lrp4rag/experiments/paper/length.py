"""Tables 3 and 4 of LRP4RAG (arXiv 2408.15533): a classifier over the resampling length L_new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lrp4rag.classifiers.calibration import Contender, Groups, Labels
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.features import Features
from lrp4rag.experiments.figures import lengths as figure
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.judge import judge, uncalibrated
from lrp4rag.experiments.paper.parts import Note, Part
from lrp4rag.experiments.paper.settings import (
    DEFAULTS,
    ONE_VECTOR,
    SHOWN_LENGTHS,
    VECTOR_WORDS,
    estimator_of,
)
from lrp4rag.lrp.resample import Mode
from lrp4rag.report.numbers import slug, with_interval
from lrp4rag.training.cache import Cell, Task
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MODES_SWEPT: tuple[Mode, ...] = ("interpolate", "zeros")
CONSTANT = "constant relevance"
KEPT = ("auroc", "accuracy", "balanced_accuracy", "f1")


@dataclass(frozen=True, slots=True)
class Curve:
    """One setting over lengths; of `metrics`, those in `KEPT`."""

    classifier: str
    vector: str
    mode: Mode
    lengths: tuple[int, ...]
    metrics: tuple[Metrics, ...]

    @property
    def name(self) -> str:
        what = CONSTANT if self.vector == CONSTANT else VECTOR_WORDS[self.vector]
        return f"{self.classifier}, {what}, {self.mode}"

    def best(self, metric: str = "accuracy") -> int:
        """The length where a metric is highest: chosen by looking at the rows it is reported on."""
        return self.lengths[int(np.argmax([point[metric].value or 0.0 for point in self.metrics]))]

    def nearest(self, length: int) -> int:
        """Of the lengths that were computed."""
        return min(self.lengths, key=lambda each: abs(each - length))

    def at(self, length: int) -> Metrics:
        """At the nearest length that was computed."""
        return self.metrics[self.lengths.index(self.nearest(length))]

    def span(self, metric: str, shortest: int) -> float:
        """The largest less the smallest value over lengths from `shortest` on."""
        values = [
            point[metric].value or 0.0
            for length, point in zip(self.lengths, self.metrics, strict=True)
            if length >= shortest
        ]
        return max(values) - min(values)


@dataclass(frozen=True, slots=True)
class Lengths:
    """The curves of each generator."""

    curves: dict[str, tuple[Curve, ...]]
    protocol: str
    left_out: tuple[Note, ...]


def length(context: Context) -> Lengths:
    """One cell a length; every row at its own length and nothing else is chosen."""
    settings = context.settings
    places = [
        (part, classifier, vector, mode, _lengths_of(vector, settings.sweep))
        for part in context.parts.values()
        for classifier in settings.sweep_classifiers
        for vector in (*(each for each in ONE_VECTOR if part.admits(each)), CONSTANT)
        for mode in MODES_SWEPT
    ]
    cells = [_cells(context, *place) for place in places]
    context.cache.all([cell for group in cells for cell in group], "lengths")
    curves: dict[str, list[Curve]] = {name: [] for name in context.parts}
    for (part, classifier, vector, mode, lengths), group in zip(places, cells, strict=True):
        metrics = tuple(context.cache.all(group, "lengths"))
        curves[part.generator].append(Curve(classifier, vector, mode, lengths, metrics))
    return Lengths(
        {name: tuple(found) for name, found in curves.items()},
        settings.plain.words,
        context.lacking("prompt", "R_prompt"),
    )


def show(result: Lengths) -> Exhibit:
    """A figure a generator and vector; the table has the lengths of `SHOWN_LENGTHS`."""
    import pandas as pd

    figures: dict[str, Figure] = {}
    tables: list[pd.DataFrame] = []
    for generator, curves in result.curves.items():
        found = {curve.name: figure.LengthCurve(curve.lengths, curve.metrics) for curve in curves}
        figures[f"length-{slug(generator)}"] = figure.draw(found, title=generator)
        tables.append(figure.table(found).assign(generator=generator))
    shown = {f"length-{slug(generator)}": _words(curves) for generator, curves in result.curves.items()}
    return Exhibit(figures, {"length": pd.concat(tables)}, shown)


def _words(curves: Sequence[Curve]) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for at in SHOWN_LENGTHS:
        if not any(at in curve.lengths for curve in curves):
            continue
        row: dict[str, Any] = {"L_new": at}
        for curve in curves:
            found = curve.at(at)["accuracy"] if at in curve.lengths else None
            row[curve.name] = with_interval(found)
        rows.append(row)
    return pd.DataFrame(rows)


def _lengths_of(vector: str, sweep: tuple[int, ...]) -> tuple[int, ...]:
    shown = tuple(each for each in sweep if each in SHOWN_LENGTHS)
    return shown if vector == CONSTANT and shown else sweep


def _cells(
    context: Context, part: Part, classifier: str, vector: str, mode: Mode, lengths: tuple[int, ...]
) -> list[Cell]:
    settings = context.settings
    key = {
        "what": "length",
        "rows": part.digest,
        "classifier": classifier,
        "vector": vector,
        "mode": mode,
        "repeats": settings.repeats,
        "seed": settings.seed,
        "resamples": settings.band_resamples,
    }
    how = settings.plain, settings.band_resamples
    return [
        Cell({**key, "length": at}, Metrics, partial(_prepare, part, classifier, vector, mode, at, *how))
        for at in lengths
    ]


def _prepare(
    part: Part, classifier: str, vector: str, mode: Mode, at: int, protocol: Protocol, resamples: int
) -> Task:
    if vector == CONSTANT:
        ones = [np.ones(len(row)) for row in part.vectors("response")]
        inputs = Features(length=at, mode=mode).resampled(ones)
    else:
        inputs = part.inputs(vector, at, mode)
    settings = DEFAULTS[classifier]
    contender = Contender(vector, classifier, settings, estimator_of(classifier, settings), inputs)
    return partial(_measured, contender, part.labels, part.groups, protocol, resamples)


def _measured(
    contender: Contender, labels: Labels, groups: Groups, protocol: Protocol, resamples: int
) -> Metrics:
    outcome = uncalibrated(
        [
            judge(contender, labels, groups, protocol, repeat, inner=False)
            for repeat in range(protocol.repeats)
        ]
    )
    metrics = outcome_metrics(outcome, labels, groups, resamples=resamples)
    return {name: metrics[name] for name in KEPT}
