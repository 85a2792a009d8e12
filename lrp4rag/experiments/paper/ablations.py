"""One change at a time: the same machine on R_response, with other rules, resampling, vector or prompt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrp4rag.classifiers.card import Metrics
from lrp4rag.experiments.paper.bench import Entrant, Way, nested
from lrp4rag.experiments.paper.context import REMEDIES, Context, Exhibit
from lrp4rag.experiments.paper.differences import Difference, draw
from lrp4rag.experiments.paper.parts import FEWEST_SOURCES, Note, Part
from lrp4rag.experiments.paper.settings import VECTOR_WORDS
from lrp4rag.experiments.paper.variants import variant_of, variants_of
from lrp4rag.report.numbers import difference, with_interval
from lrp4rag.training.store import Configuration

if TYPE_CHECKING:
    import pandas as pd

CLASSIFIER, VECTOR = "svm", "response"
SHOWN = {"auroc": "AUROC", "accuracy": "accuracy", "f1": "F1"}
USUAL = {
    "rules-paper": "--composite paper",
    "rules-cp_lrp": "--composite cp_lrp",
    "raw": "--no-chat-template",
}
"""Variants that the paper's evaluation asks for, and the option of `extract` that makes each."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a change makes of `rows` rows, what the anchor makes of the same, and the difference."""

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


def ablations(context: Context) -> Ablations:
    planned = [(part, *change) for part in context.parts.values() for change in _changes(context, part)]
    pairs = [(changed, anchor) for _, _, _, anchor, changed in planned]
    differences = context.bench.differences(pairs, "ablations")
    metrics = context.bench.metrics([entrant for pair in pairs for entrant in pair], "ablations")
    changes = [
        Change(part.generator, kind, name, len(anchor.part), old, new, gained)
        for (part, kind, name, anchor, _), new, old, gained in zip(
            planned, metrics[::2], metrics[1::2], differences, strict=True
        )
    ]
    store = next(iter(context.parts.values())).rows.store.configuration
    anchor = f"{CLASSIFIER} on {VECTOR_WORDS[VECTOR]}; {setup(store)}"
    return Ablations(anchor, tuple(changes), _left_out(context))


def setup(configuration: Configuration) -> str:
    """How a store was made: composite, prompt, target and precision."""
    reader = configuration.reader
    prompt = "chat template" if reader.get("chat_template") else "raw prompt"
    target = "response token's logit" if configuration.target == "response" else configuration.target
    return f"{configuration.composite}, {prompt}, {target}, {reader.get('dtype', 'float32')}"


def show(result: Ablations) -> Exhibit:
    import pandas as pd

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
    drawn = [
        Difference(change.generator, f"{change.kind}: {change.name}", change.difference["auroc"])
        for change in result.changes
    ]
    figures = {"ablations": draw(drawn, "AUROC, less the anchor's")} if drawn else {}
    return Exhibit(figures, {"ablations": pd.DataFrame(lines)}, {"ablations": _words(result)})


def _words(result: Ablations) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for change in result.changes:
        row = {"generator": change.generator, "what": change.kind, "change": change.name, "rows": change.rows}
        for name, title in SHOWN.items():
            row[title] = with_interval(change.changed[name])
            row[f"{title}, less the anchor's"] = difference(change.difference[name])
        rows.append(row)
    return pd.DataFrame(rows)


def _changes(context: Context, part: Part) -> Iterator[tuple[str, str, Entrant, Entrant]]:
    """Kind and name of each change, the anchor on its rows, and the changed."""
    protocol = context.settings.honest

    def machine(part: Part, **changes: str) -> Entrant:
        return nested([Way(part, CLASSIFIER, **({"vector": VECTOR} | changes))], protocol)  # type: ignore[arg-type]

    anchor = machine(part)
    for each in variants_of(context, part):
        name = f"{each.what} ({each.name})"
        yield each.kind, name, machine(each.anchor), machine(each.part, variant=each.name)
    for mode in ("zeros", "pad_last"):
        yield "resampling", mode, anchor, machine(part, mode=mode)
    for vector in ("prompt", "total", "segments", "matrix"):
        if part.admits(vector):
            yield "vector", VECTOR_WORDS[vector], anchor, machine(part, vector=vector)
    if part.has("signals"):
        yield "rules", "cp_lrp (signals)", anchor, machine(part, vector="cp_lrp")
        for target in ("largest logit", "mean logit"):
            yield "target", target, anchor, machine(part, vector=target)


def _left_out(context: Context) -> tuple[Note, ...]:
    notes = [
        Note(
            f"the variant {name}",
            f"{REMEDIES['rows'].replace('STORE', name.upper())} --parts relevance {option}, "
            f"then --variant {name}={name.upper()}",
        )
        for name, option in USUAL.items()
        if name not in context.variants
    ]
    for name in context.variants:
        poor = [each.generator for each in context.parts.values() if variant_of(context, each, name) is None]
        if poor:
            why = f"fewer than {FEWEST_SOURCES} sources of a class in common"
            remedy = REMEDIES["rows"].replace("STORE", name.upper())
            notes.append(Note(f"the variant {name} for {', '.join(poor)}: {why}", remedy))
    return (*notes, *context.lacking("signals", "other targets"), *context.lacking("prompt", "R_prompt"))
