"""Spans that annotators marked as true though no passage says so (`implicit_true`), counted both ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lrp4rag.classifiers.card import Metrics
from lrp4rag.experiments.paper.ablations import CLASSIFIER, VECTOR
from lrp4rag.experiments.paper.bench import Way, nested
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import FEWEST_SOURCES, Labels, Note, Part
from lrp4rag.report.numbers import percent, with_interval

SHOWN = {"auroc": "AUROC", "accuracy": "accuracy", "f1": "F1"}


@dataclass(frozen=True, slots=True)
class Counted:
    """One generator; `changed` rows are hallucinated only by spans that are true.

    `strict` counts those rows as hallucinated, when training and when judging. `judged` is the same
    detector with them counted as faithful, `trained` one that also learns them as faithful.
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


def relaxed(part: Part) -> Labels:
    """(R,), True where a span is marked that is not `implicit_true`."""
    return np.array(
        [any(not label.implicit_true for label in example.labels or ()) for example in part.rows.examples]
    )


def implicit(context: Context) -> Implicit:
    protocol, bench = context.settings.honest, context.bench
    found, few = {}, []
    for name, part in context.parts.items():
        other = part.relabelled(relaxed(part))
        if not other.enough:
            few.append(name)
            continue
        entrants = [nested([Way(each, CLASSIFIER, VECTOR)], protocol) for each in (part, other)]
        strict, trained = bench.metrics(entrants, "implicit_true")
        outcome, _ = bench.outcomes(entrants, "implicit_true")
        found[name] = Counted(
            rows=len(part),
            hallucinated=int(part.labels.sum()),
            changed=int((part.labels & ~other.labels).sum()),
            strict=strict,
            judged=bench.metrics_of(other, outcome),
            trained=trained,
        )
    note = Note(
        f"implicit_true for {', '.join(few)}", f"rows with other spans, of {FEWEST_SOURCES} sources or more"
    )
    return Implicit(found, (note,) if few else ())


def show(result: Implicit) -> Exhibit:
    import pandas as pd

    words, lines = [], []
    for generator, each in result.generators.items():
        ways = {
            "hallucinated": each.strict,
            "hallucinated when training, faithful when judging": each.judged,
            "faithful": each.trained,
        }
        for name, metrics in ways.items():
            positive = each.hallucinated - (0 if metrics is each.strict else each.changed)
            row = {
                "generator": generator,
                "rows that change": f"{each.changed} of {each.rows}",
                "counted as": name,
                "hallucinated": percent(positive / each.rows),
            }
            words.append(row | {title: with_interval(metrics[key]) for key, title in SHOWN.items()})
            lines += [
                {
                    "generator": generator,
                    "counted_as": name,
                    "hallucinated": positive,
                    "rows": each.rows,
                    "metric": metric,
                    "value": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                }
                for metric, interval in metrics.items()
            ]
    return Exhibit({}, {"implicit-true": pd.DataFrame(lines)}, {"implicit-true": pd.DataFrame(words)})
