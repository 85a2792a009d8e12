"""Results whose names users chose, made by hand, and pages of them read as a browser would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from experiments.metrics import Reliability
from experiments.paper import (
    ablations,
    checks,
    findings,
    length,
    table2,
    thresholds,
)
from experiments.paper.context import Note
from experiments.paper.data import Settings
from experiments.paper.thresholds import Chosen, Sweep, ThresholdMethod
from experiments.records import from_json
from experiments.systems.folds import FACTS
from lrp4rag.classifiers.card import Interval
from lrp4rag.report.numbers import METRICS

DOCS = Path(__file__).parents[3] / "experiments" / "results"
SYSTEMS = 7


def interval(value: float = 0.6) -> Interval:
    return Interval(value=value, low=value - 0.05, high=value + 0.05)


METRIC = {name: interval() for name in METRICS}


def renamed(record: Any, names: Mapping[str, str]) -> Any:
    """The record with other names, as keys and as values."""
    if isinstance(record, dict):
        return {names.get(key, key): renamed(value, names) for key, value in record.items()}
    if isinstance(record, list):
        return [renamed(value, names) for value in record]
    return names.get(record, record) if isinstance(record, str) else record


def recorded(kind: Any, name: str, names: Mapping[str, str]) -> Any:
    """The committed results of a study or a comparison, with other names, and few lines."""
    return from_json(kind, renamed(_record(kind, name), names))


@cache
def _record(kind: Any, name: str) -> Any:
    record = json.loads((DOCS / name / "results.json").read_text(encoding="utf-8"))
    if "facts" in record:
        every = [*FACTS, *(one for one in record["facts"] if one not in FACTS)]
    else:
        every = list(record["ways"]["responses"]["all"])
    record = _without(record, set(every[SYSTEMS:]))
    return {field.name: record[field.name] for field in fields(kind)}


def _without(record: Any, dropped: set[str]) -> Any:
    if not isinstance(record, dict):
        return record
    return {key: _without(value, dropped) for key, value in record.items() if key not in dropped}


def reproduced(name: str) -> dict[str, Any]:
    """A result of each section but one, of a generator and a variant of this name."""
    left_out = (Note(f"R_prompt of {name}", f"{name} has none", f"lrp4rag extract {name}"),)
    curve = length.Curve("response", "zeros", "honest", (10, 220), (METRIC, METRIC))
    chosen = Chosen((0.5,), METRIC)
    values = np.linspace(0, 1, 5)
    method = ThresholdMethod(
        "response", "within", Sweep(*[values] * len(fields(Sweep))), chosen, chosen, 0.4, interval(0.0)
    )
    line = table2.Line(
        "svm on R_response", "paper", METRIC, {f"R_response ({name})": 3}, 2, "svm", "response"
    )
    control = replace(line, name="length only", kind="control")
    best = replace(line, name=table2.BEST_OF_ALL, kind="best")
    two, three = [interval()] * 2, [interval()] * 3
    best_of_all = ("svm", interval(), "svm", interval(), 0.4, 0.5)
    target = table2.Target(0.9, "svm", 0.6, name, *two, "length only", 3, *three, (name, name), *best_of_all)
    table = table2.GeneratorTable(40, 20, 10, {"honest": (best, line, control)}, target)
    bins = Reliability(values, values[1:], values[1:], np.full(4, 5))
    return {
        "table2": table2.Table2({name: table}, {"honest": "5-fold"}, left_out),
        "thresholds": thresholds.Thresholds({name: (method,)}, left_out),
        "length": length.Lengths({name: (curve,)}, {"honest": "5-fold"}, left_out),
        "ablations": ablations.Ablations(
            f"svm on R_response; {name}",
            (ablations.Change(name, "rules", f"{name} ({name})", 40, METRIC, METRIC, METRIC),),
            left_out,
        ),
        "implicit": checks.Implicit({name: checks.Counted(40, 10, 2, METRIC, METRIC, METRIC)}, left_out),
        "reliability": checks.Diagrams({name: {"svm": bins, "novel words": bins}}),
        "transfer": checks.Transfer((checks.Pair(name, name, METRIC), checks.Pair("x", name, METRIC))),
        "findings": findings.Findings(
            {
                "1": (findings.Case(name, findings.MEAN, interval(), null=0.5),),
                "3": (findings.Case(f"{name} to {name}", "best", interval(), interval()),),
                "4": (),
            },
            left_out,
        ),
    }


def context_named(name: str) -> Any:
    """As much of `Context` as the page asks for."""

    class Subset(SimpleNamespace):
        def __len__(self) -> int:
            return 40

    configuration = SimpleNamespace(
        reader={"name": name, "chat_template": True, "dtype": name}, composite=name, target=name
    )
    rows = SimpleNamespace(store=SimpleNamespace(configuration=configuration))
    subset = Subset(rows=rows, groups=["a", "b"], prevalence=0.4)
    return SimpleNamespace(subsets={name: subset}, settings=Settings(), rows=rows, baselines={})
