"""Tables 3 and 4 of LRP4RAG (arXiv 2408.15533): a classifier over the resampling length L_new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.cache import Cell, Task
from experiments.figures.results import draw_lengths
from experiments.paper.context import Context, Exhibit, Note, metric_rows
from experiments.paper.nested import fold_scores, uncalibrated
from experiments.paper.settings import (
    DEFAULTS,
    ONE_VECTOR,
    SHOWN_LENGTHS,
    VECTOR_WORDS,
    Settings,
    estimator_of,
)
from experiments.paper.subset import Subset
from lrp4rag.classifiers.calibration import Candidate, Groups, Labels
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.features import Features
from lrp4rag.lrp.resampling import Mode
from lrp4rag.report.numbers import slug, with_interval
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics

MODES_SWEPT: tuple[Mode, ...] = ("interpolate", "zeros")
CONSTANT = "constant relevance"
KEPT = ("auroc", "accuracy", "balanced_accuracy", "f1")


@dataclass(frozen=True, slots=True)
class Curve:
    """One setting over lengths under a protocol ("honest", "paper"); of `metrics`, those in `KEPT`."""

    classifier: str
    vector: str
    mode: Mode
    protocol: str
    lengths: tuple[int, ...]
    metrics: tuple[Metrics, ...]

    @property
    def name(self) -> str:
        what = CONSTANT if self.vector == CONSTANT else VECTOR_WORDS[self.vector]
        under = "" if self.protocol == "honest" else f" ({self.protocol} protocol)"
        return f"{self.classifier}, {what}, {self.mode}{under}"

    @property
    def points(self) -> dict[int, Metrics]:
        return dict(zip(self.lengths, self.metrics, strict=True))

    def best(self, metric: str = "accuracy") -> int:
        """The length where a metric is highest: chosen by looking at the rows it is reported on."""
        return self.lengths[int(np.argmax([point[metric].value or 0.0 for point in self.metrics]))]

    def nearest(self, length: int) -> int:
        """Of the lengths that were computed."""
        return min(self.lengths, key=lambda each: abs(each - length))

    def at(self, length: int) -> Metrics:
        """At the nearest length that was computed."""
        return self.points[self.nearest(length)]

    def span(self, metric: str, shortest: int) -> float:
        """The largest less the smallest value over lengths from `shortest` on."""
        values = [point[metric].value or 0.0 for length, point in self.points.items() if length >= shortest]
        return max(values) - min(values)


@dataclass(frozen=True, slots=True)
class Lengths:
    """The curves of each generator, and what the protocols are."""

    curves: dict[str, tuple[Curve, ...]]
    protocols: dict[str, str]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Lengths:
    """One cell a length; every row at its own length and nothing else is chosen.

    The honest protocol has both ways to fill bins, the paper's has zeros, as its code does.
    """
    settings, cache = context.settings, context.cache
    swept = {"honest": (settings.plain, MODES_SWEPT), "paper": (settings.paper, (settings.paper.mode,))}
    places = [
        (subset, classifier, vector, mode, protocol)
        for subset in context.subsets.values()
        for classifier in settings.sweep_classifiers
        for vector in (*(each for each in ONE_VECTOR if subset.admits(each)), CONSTANT)
        for protocol, modes in (swept[name] for name in settings.protocols)
        for mode in modes
    ]
    cells = [
        [_cell(*place, at, settings) for at in _lengths_of(place[2], settings.sweep)] for place in places
    ]
    # All at once, so that no worker waits for the last cell of a curve.
    cache.all([cell for group in cells for cell in group], "lengths")
    curves: dict[str, tuple[Curve, ...]] = dict.fromkeys(context.subsets, ())
    for (subset, classifier, vector, mode, protocol), group in zip(places, cells, strict=True):
        lengths = _lengths_of(vector, settings.sweep)
        metrics = tuple(cache.all(group, "lengths"))
        curves[subset.generator] += (Curve(classifier, vector, mode, protocol.name, lengths, metrics),)
    words = {name: swept[name][0].words for name in settings.protocols}
    return Lengths(curves, words, context.lacking("prompt", "R_prompt"))


def show(result: Lengths) -> Exhibit:
    """A figure (of the first protocol) and a table a generator, which has the lengths of `SHOWN_LENGTHS`."""
    rows = [
        row | {"generator": generator}
        for generator, curves in result.curves.items()
        for curve in curves
        for length, metrics in curve.points.items()
        for row in metric_rows(metrics, name=curve.name, length=length)
    ]
    figures, shown = {}, {}
    for generator, curves in result.curves.items():
        name = f"length-{slug(generator)}"
        drawn = [curve for curve in curves if curve.protocol == curves[0].protocol]
        figures[name] = draw_lengths({curve.name: curve.points for curve in drawn}, title=generator)
        shown[name] = _words(curves)
    return Exhibit(figures, {"length": pd.DataFrame(rows)}, shown)


def _words(curves: Sequence[Curve]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for at in SHOWN_LENGTHS:
        if any(at in curve.lengths for curve in curves):
            found = {curve.name: curve.points.get(at) for curve in curves}
            rows.append(
                {"L_new": at}
                | {name: with_interval(each["accuracy"] if each else None) for name, each in found.items()}
            )
    return pd.DataFrame(rows)


def _lengths_of(vector: str, sweep: tuple[int, ...]) -> tuple[int, ...]:
    shown = tuple(each for each in sweep if each in SHOWN_LENGTHS)
    return shown if vector == CONSTANT and shown else sweep


def _cell(
    subset: Subset, classifier: str, vector: str, mode: Mode, protocol: Protocol, at: int, settings: Settings
) -> Cell:
    key = {
        "what": "length",
        "rows": subset.digest,
        "classifier": classifier,
        "vector": vector,
        "mode": mode,
        "repeats": settings.repeats,
        "seed": settings.seed,
        "resamples": settings.band_resamples,
        "length": at,
    }
    if not protocol.grouped:
        key["protocol"] = protocol.name
    how = protocol, settings.band_resamples
    return Cell(key, Metrics, partial(_prepare, subset, classifier, vector, mode, at, *how))


def _prepare(
    subset: Subset, classifier: str, vector: str, mode: Mode, at: int, protocol: Protocol, resamples: int
) -> Task:
    if vector == CONSTANT:
        ones = [np.ones(len(row)) for row in subset.vectors("response")]
        inputs = Features(length=at, mode=mode).resampled(ones)
    else:
        inputs = subset.inputs(vector, at, mode)
    settings = DEFAULTS[classifier]
    candidate = Candidate(vector, classifier, settings, estimator_of(classifier, settings), inputs)
    return partial(_measured, candidate, subset.labels, subset.groups, protocol, resamples)


def _measured(
    candidate: Candidate, labels: Labels, groups: Groups, protocol: Protocol, resamples: int
) -> Metrics:
    outcome = uncalibrated(
        [
            fold_scores(candidate, labels, groups, protocol, repeat, inner=False)
            for repeat in range(protocol.repeats)
        ]
    )
    metrics = outcome_metrics(outcome, labels, groups, resamples=resamples)
    return {name: metrics[name] for name in KEPT}
