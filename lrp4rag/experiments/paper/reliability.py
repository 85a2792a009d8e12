"""Reliability diagrams: whether probabilities of detectors and of lexical controls mean what they say."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.experiments.figures import reliability as figure
from lrp4rag.experiments.paper.bench import Entrant, Way, control, nested
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import Part
from lrp4rag.experiments.paper.table2 import best_of
from lrp4rag.report.numbers import number, slug
from lrp4rag.training.controls import Setting
from lrp4rag.training.metrics import Reliability, reliability

CONTROLS_SHOWN = ("novel words", "six lexical features")


@dataclass(frozen=True, slots=True, eq=False)
class Diagrams:
    """By generator and entrant."""

    lines: dict[str, dict[str, Reliability]]


def diagrams(context: Context) -> Diagrams:
    found = {}
    for name, part in context.parts.items():
        entrants = _entrants(context, part)
        outcomes = context.bench.outcomes(entrants, "reliability")
        found[name] = {
            entrant.name: reliability(part.labels, outcome.probabilities)
            for entrant, outcome in zip(entrants, outcomes, strict=True)
        }
    return Diagrams(found)


def show(result: Diagrams) -> Exhibit:
    import pandas as pd

    figures = {
        f"reliability-{slug(generator)}": figure.draw(found, title=generator)
        for generator, found in result.lines.items()
    }
    tables = [figure.table(found).assign(generator=generator) for generator, found in result.lines.items()]
    words = [
        {"generator": generator}
        | {name: number(figure.calibration_error(line)) for name, line in found.items()}
        for generator, found in result.lines.items()
    ]
    return Exhibit(figures, {"reliability": pd.concat(tables)}, {"reliability": pd.DataFrame(words)})


def _entrants(context: Context, part: Part) -> list[Entrant]:
    protocol = context.settings.honest
    setting = Setting.of(protocol, "svm", "response")
    return [
        best_of(part, protocol),
        nested([Way(part, "svm", "response")], protocol),
        *(control(part, name, setting, protocol) for name in CONTROLS_SHOWN),
    ]
