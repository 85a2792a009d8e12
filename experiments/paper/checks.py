"""Three checks of the SVM on R_response: spans that are true, calibration, and transfer between
generators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.figures.results import calibration_error, draw_reliability, draw_transfer
from experiments.metrics import Reliability, reliability
from experiments.numbers import slug
from experiments.paper.ablations import CLASSIFIER, SHOWN, VECTOR
from experiments.paper.context import REMEDIES, Context, Exhibit, Note, metric_rows, metrics_of
from experiments.paper.data import DEFAULTS, FEWEST_SOURCES, Groups, Labels, Subset, estimator_of
from experiments.paper.methods import Model, control, nested
from experiments.paper.table2 import best_of
from lrp4rag.classifiers.calibration import Candidate
from lrp4rag.classifiers.card import Metrics
from lrp4rag.example import Example
from lrp4rag.report.numbers import METRICS, number, percent, with_interval
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.validation import cross_validated

CONTROLS_SHOWN = ("novel words", "six lexical features")
LENGTH = 220
OTHERS = "all others"


# Spans that annotators marked as true though no passage says so (`implicit_true`), counted both ways.


@dataclass(frozen=True, slots=True)
class Counted:
    """One generator; `changed` rows are hallucinated only by spans that are true.

    `strict` counts those rows as hallucinated, in training and in testing. `judged` is the same detector with
    them counted as faithful, `trained` one that also learns them as faithful.
    """

    rows: int
    hallucinated: int
    changed: int
    strict: Metrics
    judged: Metrics
    trained: Metrics


@dataclass(frozen=True, slots=True)
class Implicit:
    generators: dict[str, Counted]
    left_out: tuple[Note, ...]


def relaxed(examples: tuple[Example, ...]) -> Labels:
    """(R,), True where a span is marked that is not `implicit_true`."""
    return np.array([any(not label.implicit_true for label in example.labels or ()) for example in examples])


def measure_implicit(context: Context) -> Implicit:
    others = {
        name: subset.relabelled(relaxed(subset.rows.examples)) for name, subset in context.subsets.items()
    }
    found = {
        name: _counted(context, context.subsets[name], other)
        for name, other in others.items()
        if other.enough
    }
    few = [name for name in others if name not in found]
    note = Note(
        f"implicit_true for {', '.join(few)}",
        f"fewer than {FEWEST_SOURCES} sources have rows with other spans",
        REMEDIES["rows"][1],
    )
    return Implicit(found, (note,) if few else ())


def _counted(context: Context, subset: Subset, other: Subset) -> Counted:
    methods = [nested([Model(each, CLASSIFIER, VECTOR)], context.settings.honest) for each in (subset, other)]
    strict, trained = context.metrics(methods, "implicit_true")
    outcome, _ = context.outcomes(methods, "implicit_true")
    return Counted(
        rows=len(subset),
        hallucinated=int(subset.labels.sum()),
        changed=int((subset.labels & ~other.labels).sum()),
        strict=strict,
        judged=metrics_of(outcome, *other.truth, context.settings.resamples),
        trained=trained,
    )


def show_implicit(result: Implicit) -> Exhibit:
    words, lines = [], []
    for generator, counted in result.generators.items():
        for name, metrics in (
            ("hallucinated", counted.strict),
            ("hallucinated when training, faithful when judging", counted.judged),
            ("faithful", counted.trained),
        ):
            positive = counted.hallucinated - (0 if name == "hallucinated" else counted.changed)
            row = {
                "generator": generator,
                "rows that change": f"{counted.changed} of {counted.rows}",
                "counted as": name,
                "hallucinated": percent(positive / counted.rows),
            }
            words.append(row | {METRICS[key]: with_interval(metrics[key]) for key in SHOWN})
            names = {
                "generator": generator,
                "counted_as": name,
                "hallucinated": positive,
                "rows": counted.rows,
            }
            lines += metric_rows(metrics, **names)
    return Exhibit({}, {"implicit-true": pd.DataFrame(lines)}, {"implicit-true": pd.DataFrame(words)})


# Whether probabilities of detectors and of lexical controls mean what they say.


@dataclass(frozen=True, slots=True, eq=False)
class Diagrams:
    """By generator and method."""

    lines: dict[str, dict[str, Reliability]]


def measure_reliability(context: Context) -> Diagrams:
    protocol, lines = context.settings.honest, {}
    for name, subset in context.subsets.items():
        methods = [best_of(subset, protocol), nested([Model(subset, CLASSIFIER, VECTOR)], protocol)]
        methods += [control(subset, each, protocol) for each in CONTROLS_SHOWN]
        outcomes = zip(methods, context.outcomes(methods, "reliability"), strict=True)
        lines[name] = {
            method.name: reliability(subset.labels, outcome.probabilities) for method, outcome in outcomes
        }
    return Diagrams(lines)


def show_reliability(result: Diagrams) -> Exhibit:
    figures, words, tables = {}, [], []
    for generator, lines in result.lines.items():
        figures[f"reliability-{slug(generator)}"] = draw_reliability(lines, title=generator)
        errors = {name: number(calibration_error(line)) for name, line in lines.items()}
        words.append({"generator": generator} | errors)
        tables += [
            pd.DataFrame(
                {
                    "name": name,
                    "low": line.edges[:-1],
                    "high": line.edges[1:],
                    "probability": line.probability,
                    "frequency": line.frequency,
                    "count": line.count,
                    "generator": generator,
                }
            )
            for name, line in lines.items()
        ]
    return Exhibit(figures, {"reliability": pd.concat(tables)}, {"reliability": pd.DataFrame(words)})


# Train on one generator, test on another, on sources that training never saw.


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


def measure_transfer(context: Context) -> Transfer:
    subsets, settings = context.subsets, context.settings
    trains = [*subsets, OTHERS] if len(subsets) > 2 else list(subsets)
    pairs = [(train, test) for train in trains for test in subsets]

    def calls() -> Iterator[tuple[Any, ...]]:
        for train, test in pairs:
            trained = [name for name in subsets if (name != test if train == OTHERS else name == train)]
            parts = [subsets[name] for name in dict.fromkeys([*trained, test])]
            inputs = np.concatenate([part.inputs(VECTOR, LENGTH) for part in parts])
            names = np.concatenate([np.full(len(part), part.generator) for part in parts])
            labels = np.concatenate([part.labels for part in parts])
            groups = np.concatenate([part.groups for part in parts])
            setting = DEFAULTS[CLASSIFIER]
            candidate = Candidate(VECTOR, CLASSIFIER, setting, estimator_of(CLASSIFIER, setting), inputs)
            masks = np.isin(names, trained), names == test
            yield candidate, labels, groups, settings.honest, *masks, settings.resamples

    found = context.cache.map(_transferred, calls(), len(pairs), "transfer")
    return Transfer(tuple(Pair(*pair, metrics) for pair, metrics in zip(pairs, found, strict=True)))


def _transferred(
    candidate: Candidate,
    labels: Labels,
    groups: Groups,
    protocol: Protocol,
    train: Labels,
    test: Labels,
    resamples: int,
) -> Metrics:
    outcome = cross_validated([candidate], labels, groups, protocol, train=train, test=test)
    return outcome_metrics(outcome, labels[test], groups[test], resamples=resamples)


def show_transfer(result: Transfer) -> Exhibit:
    rows = [
        row for pair in result.pairs for row in metric_rows(pair.metrics, train=pair.train, test=pair.test)
    ]
    aurocs = {(pair.train, pair.test): pair.metrics["auroc"] for pair in result.pairs}
    return Exhibit(
        {"transfer": draw_transfer(aurocs, title="SVM on R_response")}, {"transfer": pd.DataFrame(rows)}
    )
