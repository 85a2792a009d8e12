"""What LRP4RAG (arXiv 2408.15533) claims of its relevance, each claim put to a test by a stated rule.

Its second claim, that the method beats the baselines, is tested with Table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.metrics import bootstrap, compare_parts
from experiments.paper.context import Context, Exhibit, Note, metric_rows, worded
from experiments.paper.data import MATRICES, ONE_VECTOR, VECTOR_WORDS, Floats, Groups, Labels, Subset
from experiments.paper.distributions import auroc_of_low
from experiments.paper.methods import Method, Model, nested
from experiments.paper.table2 import CLASSIFIERS, on_matrices, on_vectors
from experiments.paper.thresholds import Scaling, row_means
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.numbers import difference, with_interval
from lrp4rag.report.templates import strong
from lrp4rag.training.validation import Outcome

SIZES = ("llama-2-7b-chat", "llama-2-13b-chat", "llama-2-70b-chat")
"""Generators of one family, from small to large."""
MEAN = "mean relevance"
OWN = "best of the paper's own on vectors"
UNEXPLAINED = "what the lengths of response and prompt do not explain of it"
WITHIN = "mean scaled within its row"
DECISIVE = ("svm", WITHIN)
"""On R_response and R_prompt: the SVM, and what the code of the paper's Table 1 sweeps a threshold over."""
ACROSS = "mean in logits"
ON_MATRIX = "lstm on"
"""How the words of a line on R* begin."""
NO_WORSE = -0.05
"""What a step to a larger generator may lose and still be no worse: a margin chosen here, after looking."""
LARGER = "llama-2-13b-chat"
"""The generator of which the paper says that R* tells more; of its smaller one it says the reverse."""


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
    def verdict(self) -> str:
        return worded(self.auroc, self.null)


@dataclass(frozen=True, slots=True)
class Findings:
    """The cases of each claim, by its number in the paper's order."""

    cases: dict[str, tuple[Case, ...]]
    left_out: tuple[Note, ...]

    @property
    def has_matrix(self) -> bool:
        """Whether a line is of R*."""
        return any(case.what.startswith(ON_MATRIX) for case in self.cases["4"])

    @property
    def has_prompt(self) -> bool:
        """Whether a line sets R_response beside R_prompt."""
        return any(not case.what.startswith(ON_MATRIX) for case in self.cases["4"])


def measure(context: Context) -> Findings:
    cases = {
        "1": _lower(context),
        "3": _larger_is_no_worse(context),
        "4": (*_matrix_beats_vectors(context), *_means_apart(context), *_response_beats_prompt(context)),
    }
    left_out = (
        *context.lacking("prompt", "claim 4: R_prompt"),
        *context.lacking(MATRIX, "claim 4: R*"),
    )
    return Findings(cases, left_out)


def show(result: Findings) -> Exhibit:
    shown, lines = {}, []
    for number, cases in result.cases.items():
        if cases:
            table = pd.DataFrame((_words(case) for case in cases), dtype=object)
            shown[f"finding-{number}"] = table.loc[:, (table != "").any()]
        for case in cases:
            metrics = {"auroc": case.auroc} | ({"accuracy": case.accuracy} if case.accuracy else {})
            lines += [
                row
                | {
                    "null": case.null,
                    "verdict": worded(metrics[str(row["metric"])], case.null),
                    "decides": case.decides and row["metric"] == "auroc",
                }
                for row in metric_rows(metrics, finding=number, where=case.where, what=case.what)
            ]
    return Exhibit({}, {"findings": pd.DataFrame(lines)}, shown)


def _words(case: Case) -> dict[str, str]:
    return {
        "where": case.where,
        "what": case.what if case.decides else f"also: {case.what}",
        "AUROC": with_interval(case.auroc) if case.null > 0 else difference(case.auroc),
        "accuracy": difference(case.accuracy),
        "verdict": strong(case.verdict) if case.decides else case.verdict,
    }


def _lower(context: Context) -> tuple[Case, ...]:
    """How often a hallucinated row has the lower mean of a pair."""
    subsets = context.subsets
    calls = [(_means(subset), *subset.truth, context.settings.resamples) for subset in subsets.values()]
    return tuple(
        Case(name, what, interval, null=0.5, decides=what == MEAN)
        for name, metrics in zip(subsets, context.map(separation, calls, "findings"), strict=True)
        for what, interval in metrics.items()
    )


def _means(subset: Subset) -> dict[str, Floats]:
    lengths = np.array([[len(row.response), len(row.encoded.prompt_ids)] for row in subset.rows.relevances])
    mean = np.array([row.mean() for row in subset.vectors("response")], dtype=np.float64)
    means = {MEAN: mean, UNEXPLAINED: _residual(mean, np.log(lengths))}
    for vector in ONE_VECTOR:
        if subset.admits(vector):
            name = f"{VECTOR_WORDS[vector]} scaled to (0, 1) within its row"
            means[name] = row_means(subset.vectors(vector), "within")
    return means


def _residual(values: Floats, explained_by: Floats) -> Floats:
    """What least squares on the columns, without their products, leaves of the values."""
    columns = np.column_stack([np.ones(len(values)), explained_by])
    rest: Floats = values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]
    return rest


def _means_apart(context: Context) -> tuple[Case, ...]:
    """R_response less R_prompt by their means alone: nothing is learned, so there are no folds to pool."""
    subsets = {name: subset for name, subset in context.subsets.items() if subset.admits("prompt")}
    scalings: dict[str, Scaling] = {WITHIN: "within", ACROSS: "across"}
    calls = [
        (
            {what: row_means(subset.vectors("response"), scaling) for what, scaling in scalings.items()},
            {what: row_means(subset.vectors("prompt"), scaling) for what, scaling in scalings.items()},
            *subset.truth,
            context.settings.resamples,
        )
        for subset in subsets.values()
    ]
    return tuple(
        Case(name, f"{what} on R_response, less on R_prompt", interval, decides=what in DECISIVE)
        for name, metrics in zip(subsets, context.map(separation_apart, calls, "findings"), strict=True)
        for what, interval in metrics.items()
    )


def separation(means: dict[str, Floats], labels: Labels, groups: Groups, resamples: int) -> Metrics:
    """How often a hallucinated row has the lower value of a pair."""

    def measured(rows: NDArray[np.intp]) -> dict[str, float]:
        return {name: float(auroc_of_low(values[rows], labels[rows])) for name, values in means.items()}

    return bootstrap(measured, groups, resamples=resamples)


def separation_apart(
    first: dict[str, Floats], second: dict[str, Floats], labels: Labels, groups: Groups, resamples: int
) -> Metrics:
    """How much oftener the first values are lower in a hallucinated row than the second are."""

    def measured(rows: NDArray[np.intp]) -> dict[str, float]:
        def low(values: Floats) -> float:
            return float(auroc_of_low(values[rows], labels[rows]))

        return {name: low(values) - low(second[name]) for name, values in first.items()}

    return bootstrap(measured, groups, resamples=resamples)


def _response_beats_prompt(context: Context) -> tuple[Case, ...]:
    protocol = context.settings.honest
    pairs = {
        (name, f"{classifier} on R_response, less on R_prompt"): (
            nested([Model(subset, classifier, "response")], protocol),
            nested([Model(subset, classifier, "prompt")], protocol),
        )
        for name, subset in context.subsets.items()
        if subset.admits("prompt")
        for classifier in CLASSIFIERS
    }
    return _compared(context, pairs, decides=lambda _, what: what.startswith(DECISIVE))


def _matrix_beats_vectors(context: Context) -> tuple[Case, ...]:
    protocol = context.settings.honest
    pairs: dict[tuple[str, str], tuple[Method, Method]] = {}
    for name, subset in context.subsets.items():
        if not subset.admits("matrix"):
            continue
        shared = [each.vector for each in on_matrices(subset) if each.classifier == "lstm"]
        for other in (one for one in ONE_VECTOR if subset.admits(one)):
            words = f"the best on {VECTOR_WORDS[other]}"
            best = nested([Model(subset, each, other) for each in CLASSIFIERS], protocol, words)
            for vector in MATRICES:
                lstm = nested([Model(subset, "lstm", vector)], protocol, share_inner=vector in shared)
                pairs[name, f"{ON_MATRIX} {VECTOR_WORDS[vector]}, less {words}"] = lstm, best
    stated = f"less the best on {VECTOR_WORDS['prompt']}"
    anywhere = any(what.endswith(stated) for generator, what in pairs if generator == LARGER)
    return _compared(
        context,
        pairs,
        decides=lambda generator, what: generator == LARGER and what.endswith(stated if anywhere else ""),
    )


def _compared(
    context: Context,
    pairs: Mapping[tuple[str, str], tuple[Method, Method]],
    *,
    decides: Callable[[str, str], bool],
) -> tuple[Case, ...]:
    """The first less the second of each pair, which go by generator and words, as does `decides`."""
    found = context.differences(list(pairs.values()), "findings")
    return tuple(
        Case(*names, metrics["auroc"], metrics["accuracy"], decides=decides(*names))
        for names, metrics in zip(pairs, found, strict=True)
    )


def _larger_is_no_worse(context: Context) -> tuple[Case, ...]:
    """Steps from one size to the next; sources are drawn for both generators together."""
    names = [name for name in SIZES if name in context.subsets]
    subsets = [context.subsets[name] for name in names]
    # Of R_prompt and R_response only: the candidates on R* are not the same for all generators.
    methods = [nested(on_vectors(subset), context.settings.honest) for subset in subsets]
    outcomes = context.outcomes(methods, "findings")
    pairs = list(pairwise(range(len(names)))) + ([(0, len(names) - 1)] if len(names) > 2 else [])
    # From the larger to the smaller, so that a difference is by what the larger is better.
    calls = [
        (
            [subsets[k].labels for k in (large, small)],
            [subsets[k].groups for k in (large, small)],
            [outcomes[k] for k in (large, small)],
            context.settings.resamples,
        )
        for small, large in pairs
    ]
    what = f"{OWN}, on the larger less on the smaller"
    return tuple(
        Case(f"{names[small]} to {names[large]}", what, metrics["auroc"], metrics["accuracy"], NO_WORSE)
        for (small, large), metrics in zip(pairs, context.map(step, calls, "findings"), strict=True)
    )


def step(
    labels: Sequence[Labels], groups: Sequence[Groups], outcomes: Sequence[Outcome], resamples: int
) -> Metrics:
    """The first subset's AUROC and accuracy less the second's; sources that both have are drawn once."""
    first, second = outcomes
    metrics = compare_parts(first, second, labels, groups, resamples=resamples)
    return {name: metrics[name] for name in ("auroc", "accuracy")}
