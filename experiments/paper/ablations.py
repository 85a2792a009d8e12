"""One change at a time: the same SVM on R_response, with other rules, resampling, vector or prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.figures.results import Difference, draw_differences
from experiments.paper.context import REMEDIES, Context, Exhibit, Note
from experiments.paper.data import FEWEST_SOURCES, VECTOR_WORDS, Subset
from experiments.paper.methods import Method, Model, nested
from lrp4rag.classifiers.card import Metrics
from lrp4rag.report.numbers import METRICS, difference, with_interval
from lrp4rag.training.store import Configuration

CLASSIFIER, VECTOR = "svm", "response"
SHOWN = ("auroc", "accuracy", "f1")
USUAL = {
    "rules-paper": "--composite paper",
    "rules-cp_lrp": "--composite cp_lrp",
    "raw": "--no-chat-template",
}
"""Variants that the paper's evaluation asks for, and the option of `extract` that makes each."""


@dataclass(frozen=True, slots=True)
class Change:
    """Metrics of the anchor and of the changed method on the same `rows` rows, and their difference."""

    generator: str
    kind: str
    name: str
    rows: int
    anchor: Metrics
    changed: Metrics
    difference: Metrics


@dataclass(frozen=True, slots=True)
class Ablations:
    """`anchor` says what everything is compared with."""

    anchor: str
    changes: tuple[Change, ...]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Ablations:
    planned = [change for subset in context.subsets.values() for change in _changes(context, subset)]
    pairs = [(changed, anchor) for _, _, changed, anchor in planned]
    differences = context.differences(pairs, "ablations")
    metrics = context.metrics([method for pair in pairs for method in pair], "ablations")
    changes = [
        Change(anchor.subset.generator, kind, name, len(anchor.subset), old, new, gained)
        for (kind, name, _, anchor), new, old, gained in zip(
            planned, metrics[::2], metrics[1::2], differences, strict=True
        )
    ]
    store = context.rows.store.configuration
    anchor = f"{CLASSIFIER} on {VECTOR_WORDS[VECTOR]}; {setup(store)}"
    return Ablations(anchor, tuple(changes), _left_out(context))


def setup(configuration: Configuration) -> str:
    """How a store was made: composite, prompt, target and precision."""
    reader = configuration.reader
    prompt = "chat template" if reader.get("chat_template") else "raw prompt"
    target = "response token's logit" if configuration.target == "response" else configuration.target
    return f"{configuration.composite}, {prompt}, {target}, {reader.get('dtype', 'float32')}"


def show(result: Ablations) -> Exhibit:
    lines = [
        {
            "generator": change.generator,
            "kind": change.kind,
            "change": change.name,
            "rows": change.rows,
            "metric": metric,
            "anchor": change.anchor[metric].value,
            "changed": change.changed[metric].value,
            "difference": interval.value,
            "low": interval.low,
            "high": interval.high,
        }
        for change in result.changes
        for metric, interval in change.difference.items()
    ]
    differences = [
        Difference(change.generator, f"{change.kind}: {change.name}", change.difference["auroc"])
        for change in result.changes
    ]
    figures = {"ablations": draw_differences(differences, "AUROC, less the anchor's")} if differences else {}
    words = pd.DataFrame(_words(change) for change in result.changes)
    return Exhibit(figures, {"ablations": pd.DataFrame(lines)}, {"ablations": words})


def _words(change: Change) -> dict[str, Any]:
    row = {"generator": change.generator, "what": change.kind, "change": change.name, "rows": change.rows}
    for name in SHOWN:
        row[METRICS[name]] = with_interval(change.changed[name])
        row[f"{METRICS[name]}, less the anchor's"] = difference(change.difference[name])
    return row


def _changes(context: Context, subset: Subset) -> Iterator[tuple[str, str, Method, Method]]:
    """Kind and name of each change, the changed method, and the anchor on the same rows."""
    protocol = context.settings.honest

    def svm(subset: Subset, vector: str = VECTOR, **changes: Any) -> Method:
        return nested([Model(subset, CLASSIFIER, vector, **changes)], protocol)

    anchor = svm(subset)
    for each in context.variants_of(subset):
        name = f"{each.what} ({each.name})"
        yield each.kind, name, svm(each.subset, variant=each.name), svm(each.anchor)
    for mode in ("zeros", "pad_last"):
        yield "resampling", mode, svm(subset, mode=mode), anchor
    for vector in ("prompt", "total", "segments", "matrix"):
        if subset.admits(vector):
            yield "vector", VECTOR_WORDS[vector], svm(subset, vector), anchor
    if subset.has("signals"):
        yield "rules", "cp_lrp (signals)", svm(subset, "cp_lrp"), anchor
        for target in ("largest logit", "mean logit"):
            yield "target", target, svm(subset, target), anchor


def _left_out(context: Context) -> tuple[Note, ...]:
    notes = [
        Note(
            f"the variant {name}",
            "no store of it was named",
            f"{_extraction(name)} --parts relevance {option}, then --variant {name}={name.upper()}",
        )
        for name, option in USUAL.items()
        if name not in context.variants
    ]
    for name, by_generator in context.variants.items():
        poor = [generator for generator, variant in by_generator.items() if variant is None]
        if poor:
            why = f"there are fewer than {FEWEST_SOURCES} sources of a class in common"
            notes.append(Note(f"the variant {name} for {', '.join(poor)}", why, _extraction(name)))
    return (*notes, *context.lacking("signals", "other targets"), *context.lacking("prompt", "R_prompt"))


def _extraction(variant: str) -> str:
    return REMEDIES["rows"][1].replace("STORE", variant.upper())
