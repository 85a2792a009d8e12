"""The four findings of LRP4RAG (arXiv 2408.15533), each put to a test by a stated rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.paper.bench import Entrant, Way, nested
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.experiments.paper.parts import Labels, Note, Part
from lrp4rag.experiments.paper.settings import MATRICES, ONE_VECTOR, VECTOR_WORDS
from lrp4rag.experiments.paper.significance import auroc_of_low
from lrp4rag.experiments.paper.sweep import row_means
from lrp4rag.experiments.paper.table2 import CLASSIFIERS, on_matrices, on_vectors
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.markdown import strong
from lrp4rag.report.numbers import Verdict, difference, verdict, with_interval
from lrp4rag.training.cache import Cell, Task
from lrp4rag.training.metrics import RESAMPLES, bootstrap, compare_parts
from lrp4rag.training.search import Outcome

SIZES = ("llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat")
"""Generators of one family, from small to large."""
MEAN = "mean relevance"
UNEXPLAINED = "what the lengths of response and prompt do not explain of it"
DECISIVE = "svm"
LARGER = "llama-2-13b-chat"
"""The generator of which the paper says that R* beats R_response; of its smaller one it says the reverse."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `auroc` decides against `null`; `accuracy` is beside it where there is one.

    A case that does not `decide` is there to explain the one that does.
    """

    where: str
    what: str
    auroc: Interval
    accuracy: Interval | None = None
    null: float = 0.0
    decides: bool = True

    @property
    def verdict(self) -> Verdict:
        return verdict(self.auroc, self.null)


@dataclass(frozen=True, slots=True)
class Findings:
    """The cases of each finding, by its number."""

    cases: dict[str, tuple[Case, ...]]
    left_out: tuple[Note, ...]


def findings(context: Context) -> Findings:
    cases = {
        "1": _lower(context),
        "2": _response_beats_prompt(context),
        "3": _larger_is_harder(context),
        "4": _matrix_beats_response(context),
    }
    left_out = (
        *context.lacking("prompt", "finding 2: R_prompt"),
        *context.lacking(MATRIX, "finding 4: R*"),
    )
    return Findings(cases, left_out)


def show(result: Findings) -> Exhibit:
    import pandas as pd

    shown, lines = {}, []
    for number, cases in result.cases.items():
        rows = []
        for case in cases:
            words = with_interval(case.auroc) if case.null else difference(case.auroc)
            what = case.what if case.decides else f"also: {case.what}"
            row = {"where": case.where, "what": what, "AUROC": words}
            if case.accuracy is not None:
                row["accuracy"] = difference(case.accuracy)
            rows.append(row | {"verdict": strong(case.verdict) if case.decides else case.verdict})
            for name, interval in (("auroc", case.auroc), ("accuracy", case.accuracy)):
                if interval is not None:
                    line: dict[str, object] = {"finding": number, "where": case.where}
                    line |= {"what": case.what, "metric": name}
                    line |= {"value": interval.value, "low": interval.low, "high": interval.high}
                    lines.append(line | {"null": case.null, "verdict": verdict(interval, case.null)})
        if rows:
            shown[f"finding-{number}"] = pd.DataFrame(rows, dtype=object)
    return Exhibit({}, {"findings": pd.DataFrame(lines)}, shown)


def _lower(context: Context) -> tuple[Case, ...]:
    cells = [
        Cell(
            {
                "what": "low means",
                "vectors": [vector for vector in ONE_VECTOR if part.admits(vector)],
                "rows": part.digest,
                "resamples": context.settings.resamples,
            },
            Metrics,
            partial(_prepare_lower, part, context.settings.resamples),
        )
        for part in context.parts.values()
    ]
    return tuple(
        Case(name, what, interval, null=0.5, decides=what == MEAN)
        for name, found in zip(context.parts, context.cache.all(cells, "findings"), strict=True)
        for what, interval in found.items()
    )


def _prepare_lower(part: Part, resamples: int) -> Task:
    lengths = np.array([[len(row.response), len(row.encoded.prompt_ids)] for row in part.rows.relevances])
    mean = np.array([row.mean() for row in part.vectors("response")], dtype=np.float64)
    means = {MEAN: mean, UNEXPLAINED: _residual(mean, np.log(lengths))}
    for vector in ONE_VECTOR:
        if part.admits(vector):
            name = f"{VECTOR_WORDS[vector]} scaled to (0, 1) within its row"
            means[name] = row_means(part.vectors(vector), "within")
    return partial(_separation, means, part.labels, part.groups, resamples)


def _residual(values: NDArray[np.float64], explained_by: NDArray[np.float64]) -> NDArray[np.float64]:
    """What least squares on the columns, without their products, leaves of the values."""
    columns = np.column_stack([np.ones(len(values)), explained_by])
    rest: NDArray[np.float64] = values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    return rest


def _separation(
    means: dict[str, NDArray[np.float64]],
    labels: Labels,
    groups: NDArray[np.str_],
    resamples: int = RESAMPLES,
) -> Metrics:
    """How often a hallucinated row has the lower value of a pair."""
    columns = np.column_stack(list(means.values()))

    def measured(rows: NDArray[np.intp]) -> dict[str, float]:
        return dict(zip(means, map(float, auroc_of_low(columns[rows], labels[rows])), strict=True))

    return bootstrap(measured, groups, resamples=resamples)


def _response_beats_prompt(context: Context) -> tuple[Case, ...]:
    protocol = context.settings.honest
    return _compared(
        context,
        [
            (
                f"{classifier} on R_response, less on R_prompt",
                nested([Way(part, classifier, "response")], protocol),
                nested([Way(part, classifier, "prompt")], protocol),
            )
            for part in context.parts.values()
            if part.admits("prompt")
            for classifier in (DECISIVE, *(name for name in CLASSIFIERS if name != DECISIVE))
        ],
        decides=lambda _, what: what.startswith(DECISIVE),
    )


def _matrix_beats_response(context: Context) -> tuple[Case, ...]:
    protocol = context.settings.honest
    made: list[tuple[str, Entrant, Entrant]] = []
    for part in context.parts.values():
        if not part.admits("matrix"):
            continue
        own = [Way(part, classifier, "response") for classifier in CLASSIFIERS]
        best = nested(own, protocol, "best on R_response")
        for vector in MATRICES:
            what = f"lstm on {VECTOR_WORDS[vector]}, less the best on R_response"
            shared = ("lstm", vector) in [(way.classifier, way.vector) for way in on_matrices(part)]
            made.append((what, nested([Way(part, "lstm", vector)], protocol, share_inner=shared), best))
    return _compared(context, made, decides=lambda generator, _: generator == LARGER)


def _compared(
    context: Context, made: Sequence[tuple[str, Entrant, Entrant]], *, decides: Callable[[str, str], bool]
) -> tuple[Case, ...]:
    """The first less the second of each; `decides` is asked with the generator and the words."""
    pairs = [(first, second) for _, first, second in made]
    found = context.bench.differences(pairs, "findings")
    return tuple(
        Case(
            first.part.generator,
            what,
            metrics["auroc"],
            metrics["accuracy"],
            decides=decides(first.part.generator, what),
        )
        for (what, first, _), metrics in zip(made, found, strict=True)
    )


def _larger_is_harder(context: Context) -> tuple[Case, ...]:
    """Steps from one size to the next; sources are drawn for both generators together."""
    parts = [context.parts[name] for name in SIZES if name in context.parts]
    # Of R_prompt and R_response only: what contends on R* is not the same for all generators.
    entrants = [nested(on_vectors(part), context.settings.honest) for part in parts]
    outcomes = context.bench.outcomes(entrants, "findings")
    steps = list(pairwise(range(len(parts)))) + ([(0, len(parts) - 1)] if len(parts) > 2 else [])
    resamples = context.settings.resamples
    cells = [
        Cell(
            {"what": "step", "of": [entrants[k].key for k in step], "resamples": resamples},
            Metrics,
            partial(_prepare_step, [parts[k] for k in step], [outcomes[k] for k in step], resamples),
        )
        for step in steps
    ]
    return tuple(
        Case(
            f"{parts[small].generator} to {parts[large].generator}",
            "best of the paper's own on vectors, on the smaller less on the larger",
            found["auroc"],
            found["accuracy"],
        )
        for (small, large), found in zip(steps, context.cache.all(cells, "findings"), strict=True)
    )


def _prepare_step(parts: Sequence[Part], outcomes: Sequence[Outcome], resamples: int) -> Task:
    labels = [part.labels for part in parts]
    return partial(step, labels, [part.groups for part in parts], outcomes, resamples)


def step(
    labels: Sequence[Labels],
    groups: Sequence[NDArray[np.str_]],
    outcomes: Sequence[Outcome],
    resamples: int = RESAMPLES,
) -> Metrics:
    """The first part's AUROC and accuracy less the second's. Parts share sources, which are drawn once."""
    first, second = outcomes
    found = compare_parts(first, second, labels, groups, resamples=resamples)
    return {name: found[name] for name in ("auroc", "accuracy")}
