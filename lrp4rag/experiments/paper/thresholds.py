"""Tables 1 and 5 of LRP4RAG (arXiv 2408.15533): the threshold on mean relevance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lrp4rag.experiments.figures import thresholds as figure
from lrp4rag.experiments.figures.paper import vectors_of
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import Note, Part
from lrp4rag.experiments.paper.sweep import SCALINGS, Scaling, ThresholdMethod, threshold_method
from lrp4rag.report.numbers import number, with_interval
from lrp4rag.training.cache import Cell, Task

STRIDE = 2
"""Every second threshold of the sweep goes into the CSV file."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The methods of each generator: a vector and a scaling."""

    methods: dict[str, tuple[ThresholdMethod, ...]]
    left_out: tuple[Note, ...]


def thresholds(context: Context) -> Thresholds:
    shared = shared_vectors(context)
    places = [(name, vector, scaling) for name in context.parts for scaling in SCALINGS for vector in shared]
    cells = [_cell(context, *place) for place in places]
    found: dict[str, list[ThresholdMethod]] = {name: [] for name in context.parts}
    for (name, _, _), method in zip(places, context.cache.all(cells, "thresholds"), strict=True):
        found[name].append(method)
    return Thresholds(
        {name: tuple(methods) for name, methods in found.items()}, context.lacking("prompt", "R_prompt")
    )


def shared_vectors(context: Context) -> tuple[str, ...]:
    """R_prompt where every generator has it, and R_response: figures have the same rows for all."""
    pulled = all(part.has("prompt") for part in context.parts.values())
    return ("prompt", "response") if pulled else ("response",)


def show(result: Thresholds) -> Exhibit:
    # Across rows both vectors have the same mean: one row of panels says it.
    drawn = {
        generator: [each for each in methods if (each.vector, each.scaling) != ("prompt", "across")]
        for generator, methods in result.methods.items()
    }
    sweep = figure.sweep_table(result.methods)
    best = figure.best_table(result.methods)
    words = best[["generator", "vector", "scaling", "chosen_on"]].assign(
        threshold=best["threshold"].map(number)
    )
    for name in ("f1", "accuracy", "auroc"):
        words[name] = [
            with_interval(chosen.metrics[name])
            for methods in result.methods.values()
            for method in methods
            for chosen in (method.reported, method.honest)
        ]
    words["F1 of flagging everything"] = best["flag_everything_f1"].map(number)
    words["paper: threshold, F1"] = [
        f"{number(at, 2)}, {number(f1)}".removeprefix(", ")
        for at, f1 in zip(best["paper_threshold"], best["paper_f1"], strict=True)
    ]
    words = words.rename(columns={"f1": "F1", "auroc": "AUROC", "chosen_on": "chosen on"})
    return Exhibit(
        {"thresholds": figure.draw(drawn)},
        {"tables-1-and-5": best, "threshold-sweep": sweep.iloc[::STRIDE]},
        {"tables-1-and-5": words},
    )


def _cell(context: Context, generator: str, vector: str, scaling: Scaling) -> Cell:
    part, resamples = context.parts[generator], context.settings.resamples
    key = {"what": "threshold", "vector": vector, "scaling": scaling, "rows": part.digest}
    prepare = partial(_prepare, part, vector, scaling, resamples)
    return Cell(key | {"resamples": resamples}, ThresholdMethod, prepare)


def _prepare(part: Part, vector: str, scaling: Scaling, resamples: int) -> Task:
    vectors = vectors_of(part.rows)[vector]
    return partial(
        threshold_method, vector, vectors, part.labels, part.groups, scaling=scaling, resamples=resamples
    )
