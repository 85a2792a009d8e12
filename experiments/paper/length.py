"""Tables 3 and 4 of LRP4RAG (arXiv 2408.15533): the SVM over the resampling length L_new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.figures.results import draw_lengths
from experiments.numbers import slug
from experiments.paper.context import Context, Exhibit, Note, metric_rows
from experiments.paper.data import (
    DEFAULTS,
    ONE_VECTOR,
    SHOWN_LENGTHS,
    VECTOR_WORDS,
    Groups,
    Labels,
    Subset,
    estimator_of,
)
from experiments.paper.methods import fold_scores, uncalibrated
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.vectors import Features
from lrp4rag.lrp.resampling import Mode
from lrp4rag.report.numbers import with_interval
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics

CLASSIFIER = "svm"
CONSTANT = "constant relevance"
METRICS = ("auroc", "accuracy", "balanced_accuracy", "f1")


@dataclass(frozen=True, slots=True)
class Curve:
    """One vector over lengths under a protocol ("honest", "paper"); of `metrics`, those in `METRICS`."""

    vector: str
    mode: Mode
    protocol: str
    lengths: tuple[int, ...]
    metrics: tuple[Metrics, ...]

    @property
    def name(self) -> str:
        what = CONSTANT if self.vector == CONSTANT else VECTOR_WORDS[self.vector]
        under = "" if self.protocol == "honest" else f" ({self.protocol} protocol)"
        return f"{CLASSIFIER}, {what}, {self.mode}{under}"

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
    """Every row at its own length, and nothing else is chosen. The honest protocol has both ways to fill
    bins, the paper's has zeros, as its code does."""
    settings = context.settings
    ways: list[tuple[Protocol, Mode]] = [
        (settings.plain, "interpolate"),
        (settings.plain, "zeros"),
        (settings.paper, settings.paper.mode),
    ]
    curves = [
        (subset, vector, protocol, mode)
        for subset in context.subsets.values()
        for vector in (*(each for each in ONE_VECTOR if subset.admits(each)), CONSTANT)
        for protocol, mode in ways
    ]
    lengths = {vector: _lengths_of(vector, settings.sweep) for _, vector, _, _ in curves}

    def calls() -> Iterator[tuple[Any, ...]]:
        for subset, vector, protocol, mode in curves:
            for length in lengths[vector]:
                candidate = _candidate(subset, vector, mode, length)
                yield candidate, *subset.truth, protocol, settings.band_resamples

    count = sum(len(lengths[vector]) for _, vector, _, _ in curves)
    metrics = iter(context.cache.map(_metrics, calls(), count, "lengths"))
    found: dict[str, tuple[Curve, ...]] = dict.fromkeys(context.subsets, ())
    for subset, vector, protocol, mode in curves:
        points = tuple(next(metrics) for _ in lengths[vector])
        found[subset.generator] += (Curve(vector, mode, protocol.name, lengths[vector], points),)
    words = {protocol.name: protocol.words for protocol in (settings.plain, settings.paper)}
    return Lengths(found, words, context.lacking("prompt", "R_prompt"))


def _lengths_of(vector: str, sweep: tuple[int, ...]) -> tuple[int, ...]:
    shown = tuple(each for each in sweep if each in SHOWN_LENGTHS)
    return shown if vector == CONSTANT and shown else sweep


def _candidate(subset: Subset, vector: str, mode: Mode, length: int) -> Candidate:
    if vector == CONSTANT:
        ones = [np.ones(len(row)) for row in subset.vectors("response")]
        inputs = Features(length=length, mode=mode).resampled(ones)
    else:
        inputs = subset.inputs(vector, length, mode)
    settings = DEFAULTS[CLASSIFIER]
    return Candidate(vector, CLASSIFIER, settings, estimator_of(CLASSIFIER, settings), inputs)


def _metrics(
    candidate: Candidate, labels: Labels, groups: Groups, protocol: Protocol, resamples: int
) -> Metrics:
    outcome = uncalibrated(fold_scores(candidate, labels, groups, protocol, inner=False))
    metrics = outcome_metrics(outcome, labels, groups, resamples=resamples)
    return {name: metrics[name] for name in METRICS}


def show(result: Lengths) -> Exhibit:
    """A figure (of the honest protocol) and a table a generator, which has the lengths of `SHOWN_LENGTHS`."""
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
        drawn = {curve.name: curve.points for curve in curves if curve.protocol == "honest"}
        figures[name] = draw_lengths(drawn, title=generator)
        shown[name] = _words(curves)
    return Exhibit(figures, {"length": pd.DataFrame(rows)}, shown)


def _words(curves: Sequence[Curve]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for length in SHOWN_LENGTHS:
        points = {curve.name: curve.points.get(length) for curve in curves}
        if any(points.values()):
            words = {
                name: with_interval(point["accuracy"] if point else None) for name, point in points.items()
            }
            rows.append({"L_new": length} | words)
    return pd.DataFrame(rows)
