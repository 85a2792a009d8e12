"""Reliability diagrams: whether probabilities of detectors and of lexical controls mean what they say."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from experiments.figures.results import calibration_error, draw_reliability
from experiments.metrics import Reliability, reliability
from experiments.paper.context import Context, Exhibit
from experiments.paper.methods import Method, Model, control, nested
from experiments.paper.subset import Subset
from experiments.paper.table2 import best_of
from lrp4rag.report.numbers import number, slug
from lrp4rag.training.folds import Protocol

CONTROLS_SHOWN = ("novel words", "six lexical features")


@dataclass(frozen=True, slots=True, eq=False)
class Diagrams:
    """By generator and method."""

    lines: dict[str, dict[str, Reliability]]


def measure(context: Context) -> Diagrams:
    found = {}
    for name, subset in context.subsets.items():
        methods = _methods(subset, context.settings.honest)
        outcomes = context.outcomes(methods, "reliability")
        found[name] = {
            method.name: reliability(subset.labels, outcome.probabilities)
            for method, outcome in zip(methods, outcomes, strict=True)
        }
    return Diagrams(found)


def show(result: Diagrams) -> Exhibit:
    figures, words = {}, []
    for generator, found in result.lines.items():
        figures[f"reliability-{slug(generator)}"] = draw_reliability(found, title=generator)
        errors = {name: number(calibration_error(line)) for name, line in found.items()}
        words.append({"generator": generator} | errors)
    return Exhibit(figures, {"reliability": _table(result)}, {"reliability": pd.DataFrame(words)})


def _table(result: Diagrams) -> pd.DataFrame:
    """One line a generator, name and bin."""
    return pd.concat(
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
        for generator, found in result.lines.items()
        for name, line in found.items()
    )


def _methods(subset: Subset, protocol: Protocol) -> list[Method]:
    detectors = [best_of(subset, protocol), nested([Model(subset, "svm", "response")], protocol)]
    return detectors + [control(subset, name, protocol) for name in CONTROLS_SHOWN]
