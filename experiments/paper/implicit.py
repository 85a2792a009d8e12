"""Spans that annotators marked as true though no passage says so (`implicit_true`), counted both ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.paper.ablations import CLASSIFIER, SHOWN, VECTOR
from experiments.paper.context import REMEDIES, Context, Exhibit, Note, metric_rows
from experiments.paper.methods import Model, nested
from experiments.paper.subset import FEWEST_SOURCES, Labels, Subset
from lrp4rag.classifiers.card import Metrics
from lrp4rag.report.numbers import METRICS, percent, with_interval


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


def relaxed(subset: Subset) -> Labels:
    """(R,), True where a span is marked that is not `implicit_true`."""
    return np.array(
        [any(not label.implicit_true for label in example.labels or ()) for example in subset.rows.examples]
    )


def measure(context: Context) -> Implicit:
    others = {name: subset.relabelled(relaxed(subset)) for name, subset in context.subsets.items()}
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
    protocol = context.settings.honest
    methods = [nested([Model(each, CLASSIFIER, VECTOR)], protocol) for each in (subset, other)]
    strict, trained = context.metrics(methods, "implicit_true")
    outcome, _ = context.outcomes(methods, "implicit_true")
    return Counted(
        rows=len(subset),
        hallucinated=int(subset.labels.sum()),
        changed=int((subset.labels & ~other.labels).sum()),
        strict=strict,
        judged=context.metrics_of(other, outcome),
        trained=trained,
    )


def show(result: Implicit) -> Exhibit:
    words, lines = [], []
    for generator, each in result.generators.items():
        for name, metrics in (
            ("hallucinated", each.strict),
            ("hallucinated when training, faithful when judging", each.judged),
            ("faithful", each.trained),
        ):
            positive = each.hallucinated - (0 if name == "hallucinated" else each.changed)
            row = {
                "generator": generator,
                "rows that change": f"{each.changed} of {each.rows}",
                "counted as": name,
                "hallucinated": percent(positive / each.rows),
            }
            words.append(row | {METRICS[key]: with_interval(metrics[key]) for key in SHOWN})
            names = {"generator": generator, "counted_as": name, "hallucinated": positive, "rows": each.rows}
            lines += metric_rows(metrics, **names)
    return Exhibit({}, {"implicit-true": pd.DataFrame(lines)}, {"implicit-true": pd.DataFrame(words)})
