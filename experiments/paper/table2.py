"""Table 2 of LRP4RAG (arXiv 2408.15533): classifiers on relevance, under two protocols, beside controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from experiments.figures.results import Entry, draw_forest
from experiments.figures.text import label
from experiments.numbers import slug
from experiments.paper.context import Context, Exhibit, Note, metric_rows, metrics_of, worded
from experiments.paper.data import MATRICES, ONE_VECTOR, TWO_VECTORS, Subset, Variant, lengths_of
from experiments.paper.methods import Method, Model, control, nested, single
from experiments.published import TABLE_2, Row, best_published, published
from experiments.tokens.controls import available
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.features.parts import MATRIX
from lrp4rag.report.numbers import METRICS, percent, with_interval
from lrp4rag.report.templates import emphasised, strong, text
from lrp4rag.training.controls import FLAG_EVERYTHING, flag_everything
from lrp4rag.training.folds import Protocol
from lrp4rag.training.validation import Outcome

CLASSIFIERS = ("threshold", "svm", "mlp", "forest")
ON_OURS = ("threshold", "svm")
BEST, BEST_BY_ACCURACY = "best of the paper's own", "best of the paper's own, chosen by accuracy"
BEST_OF_ALL = "best of the paper's own, rules and prompt chosen too"
MAJORITY = "majority class"
COMPARED = {"forest": "response", "mlp": "response", "svm": "response", "lstm": "matrix"}
"""The vector of ours beside which each of the paper's classifiers is printed."""

Kind = Literal["best", "paper", "ours", "control"]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table. `chosen` counts what won in how many folds, `leaks` rows whose source was
    trained on."""

    name: str
    kind: Kind
    metrics: Metrics
    chosen: dict[str, int]
    leaks: int
    classifier: str = ""
    vector: str = ""

    @property
    def accuracy(self) -> Interval:
        return self.metrics["accuracy"]


@dataclass(frozen=True, slots=True)
class Target:
    """The paper's best accuracy on a generator, and what comes near it on our rows.

    `baseline` is the accuracy of the paper's best baseline.
    `best` is the best of the paper's own classifiers, chosen by accuracy inside the folds; `control` the one
    of `controls` whose accuracy is highest, and `over_control` what `best` has more than it, when its
    settings are chosen by accuracy too; `paper` is the classifier with the highest accuracy under the paper's
    protocol, and `highest` that under ours. `control`, `paper` and `highest` were chosen by looking at these
    rows. `prevalence` and `published_prevalence` are the shares of hallucinated responses.
    """

    published: float
    published_by: str
    baseline: float
    baseline_by: str
    best: Interval
    majority: Interval
    control: str
    controls: int
    control_accuracy: Interval
    over_control: Interval
    best_of_all: Interval | None
    variants: tuple[str, ...]
    paper: str
    paper_accuracy: Interval
    highest: str
    highest_accuracy: Interval
    prevalence: float
    published_prevalence: float

    @property
    def over_baseline(self) -> Interval:
        """What `best` has more than the paper's best baseline, a fixed number."""
        bounds = self.best.model_dump()
        return Interval(**{name: None if x is None else x - self.baseline for name, x in bounds.items()})

    @property
    def beats(self) -> dict[str, str]:
        """Whether `best` is shown to be more accurate than the paper's best baseline, and than `control`."""
        gains = {"the paper's best baseline": self.over_baseline, self.control: self.over_control}
        return {name: worded(gain, 0.0) for name, gain in gains.items()}


@dataclass(frozen=True, slots=True)
class GeneratorTable:
    """One generator's lines, by protocol ("honest", "paper")."""

    rows: int
    sources: int
    hallucinated: int
    lines: dict[str, tuple[Line, ...]]
    target: Target | None


@dataclass(frozen=True, slots=True)
class Table2:
    generators: dict[str, GeneratorTable]
    protocols: dict[str, str]
    left_out: tuple[Note, ...]


def models_of(subset: Subset) -> list[Model]:
    """The paper's classifiers on its vectors and on ours, those that the rows admit."""
    names = [(classifier, vector) for vector in ONE_VECTOR for classifier in CLASSIFIERS]
    names += [(classifier, vector) for vector in TWO_VECTORS for classifier in ON_OURS]
    # The mean over segments is a third of the mean of their sum: the same threshold.
    names.remove(("threshold", "segments"))
    names += [("lstm", vector) for vector in MATRICES]
    return [Model(subset, *each) for each in names if subset.admits(each[1])]


def on_vectors(subset: Subset) -> list[Model]:
    """The paper's classifiers on R_prompt and R_response."""
    return [model for model in models_of(subset) if model.vector in ONE_VECTOR]


def on_matrices(subset: Subset) -> list[Model]:
    """Candidates on R* for the best: the LSTM where the paper has a figure to compare it with.

    An LSTM among the candidates is trained thirty times, so it has its quicker reading only.
    """
    names = [("svm", "matrix"), *([("lstm", "matrix_t")] if published("lstm", subset.generator) else [])]
    return [Model(subset, *each) for each in names if subset.admits("matrix")]


def best_of(subset: Subset, protocol: Protocol) -> Method:
    """The best of the paper's own: classifier, vector (R_prompt, R_response, R*) and L_new are chosen."""
    name = BEST if protocol.scoring == "auroc" else BEST_BY_ACCURACY
    return nested([*on_vectors(subset), *on_matrices(subset)], protocol, name)


def best_of_all(context: Context, subset: Subset, protocol: Protocol) -> Method | None:
    """The same, with R_response of the other stores among the candidates; None where none has all rows."""
    models = [
        Model(variant.subset, name, "response", variant=variant.name)
        for variant in _complete(context, subset)
        for name in CLASSIFIERS
    ]
    every = [*on_vectors(subset), *on_matrices(subset), *models]
    return nested(every, protocol, BEST_OF_ALL) if models else None


def _complete(context: Context, subset: Subset) -> list[Variant]:
    """Only what has the same rows can be chosen among."""
    return [variant for variant in context.variants_of(subset) if variant.anchor is subset]


def methods_of(
    context: Context, subset: Subset, protocol: Protocol
) -> list[tuple[Kind, Model | None, Method]]:
    """All lines of a generator under a protocol but those that need no fitting."""
    methods: list[tuple[Kind, Model | None, Method]] = []
    if protocol.nested:
        by_accuracy = context.settings.by_accuracy
        best = (
            best_of_all(context, subset, by_accuracy),
            best_of(subset, by_accuracy),
            best_of(subset, protocol),
        )
        methods += [("best", None, method) for method in best if method is not None]
    for model in models_of(subset):
        kind: Kind = "ours" if model.vector in TWO_VECTORS else "paper"
        methods.append((kind, model, _line_method(model, protocol)))
    names, _ = available(subset.rows)
    return methods + [("control", None, control(subset, name, protocol)) for name in names]


def _line_method(model: Model, protocol: Protocol) -> Method:
    if protocol.nested:
        shared = [(each.classifier, each.vector) for each in on_matrices(model.subset)]
        return nested([model], protocol, share_inner=(model.classifier, model.vector) in shared)
    in_matrices = model.vector in MATRICES
    length = lengths_of(model.classifier, model.vector)[-1] if in_matrices else protocol.lengths[0]
    return single(replace(model, mode=protocol.mode), length, protocol)


def measure(context: Context) -> Table2:
    """Lines that a store lacks the parts for are left out, and noted."""
    protocols = context.settings.protocols
    # All at once, so that no worker waits for the last step of a generator.
    every = {
        (name, protocol.name): methods_of(context, subset, protocol)
        for name, subset in context.subsets.items()
        for protocol in protocols
    }
    context.outcomes([method for each in every.values() for _, _, method in each], "table 2")
    generators = {}
    for name, subset in context.subsets.items():
        lines = {
            protocol.name: _lines(context, subset, protocol, every[name, protocol.name])
            for protocol in protocols
        }
        generators[name] = GeneratorTable(
            rows=len(subset),
            sources=len(set(subset.groups)),
            hallucinated=int(subset.labels.sum()),
            lines=lines,
            target=_target(subset, lines, context),
        )
    signals = "relevance by segment, and the controls of likelihood, attention and hidden states,"
    left_out = (
        *context.notes,
        *context.lacking("prompt", "R_prompt"),
        *context.lacking(MATRIX, "the LSTM on R*, and Figure 4,"),
        *context.lacking("signals", signals),
    )
    return Table2(generators, {each.name: each.words for each in protocols}, left_out)


def _lines(
    context: Context,
    subset: Subset,
    protocol: Protocol,
    methods: Sequence[tuple[Kind, Model | None, Method]],
) -> tuple[Line, ...]:
    fitted = [method for _, _, method in methods]
    results = zip(
        methods, context.metrics(fitted, "table 2"), context.outcomes(fitted, "table 2"), strict=True
    )
    lines = [
        _line(method.name, kind, metrics, outcome, model)
        for (kind, model, method), metrics, outcome in results
    ]
    for name, outcome in (
        (FLAG_EVERYTHING, flag_everything(subset.labels, protocol)),
        (MAJORITY, majority(subset, protocol)),
    ):
        metrics = metrics_of(outcome, *subset.truth, context.settings.resamples)
        lines.append(_line(name, "control", metrics, outcome, None))
    return tuple(lines)


def majority(subset: Subset, protocol: Protocol) -> Outcome:
    """The more frequent class for every row, with its frequency as the probability."""
    probabilities = np.full((protocol.repeats, len(subset)), subset.prevalence)
    return Outcome(probabilities, probabilities >= 0.5)


def _line(name: str, kind: Kind, metrics: Metrics, outcome: Outcome, model: Model | None) -> Line:
    return Line(
        name=name,
        kind=kind,
        metrics=metrics,
        chosen=dict(Counter(outcome.chosen).most_common()),
        leaks=outcome.leaks,
        classifier=model.classifier if model else "",
        vector=model.vector if model else "",
    )


def _target(subset: Subset, lines: dict[str, tuple[Line, ...]], context: Context) -> Target | None:
    """None for a generator that the paper does not have."""
    if subset.generator not in {row.generator for row in TABLE_2}:
        return None
    highest, baseline = (best_published(kind, subset.generator) for kind in ("lrp4rag", "baseline"))
    by_name = {line.name: line for line in lines["honest"]}
    rivals = [
        line
        for line in lines["honest"]
        if line.kind == "control" and line.name not in (MAJORITY, FLAG_EVERYTHING)
    ]
    rival = max(rivals, key=_by_accuracy)
    by_looking, in_folds = (
        max((line for line in lines[name] if line.kind == "paper"), key=_by_accuracy)
        for name in ("paper", "honest")
    )
    best_of_all = by_name.get(BEST_OF_ALL)
    return Target(
        published=highest.accuracy,
        published_by=highest.classifier,
        baseline=baseline.accuracy,
        baseline_by=baseline.classifier,
        best=by_name[BEST_BY_ACCURACY].accuracy,
        majority=by_name[MAJORITY].accuracy,
        control=rival.name,
        controls=len(rivals),
        control_accuracy=rival.accuracy,
        over_control=_over(subset, rival.name, context),
        best_of_all=best_of_all.accuracy if best_of_all else None,
        variants=tuple(variant.what for variant in _complete(context, subset)),
        paper=by_looking.name,
        paper_accuracy=by_looking.accuracy,
        highest=in_folds.name,
        highest_accuracy=in_folds.accuracy,
        prevalence=subset.prevalence,
        published_prevalence=highest.prevalence,
    )


def _over(subset: Subset, rival: str, context: Context) -> Interval:
    """The accuracy of the best less the control's, row by row."""
    protocol = context.settings.by_accuracy
    pair = best_of(subset, protocol), control(subset, rival, protocol)
    return context.differences([pair], "table 2")[0]["accuracy"]


def _by_accuracy(line: Line) -> float:
    return line.accuracy.value or 0.0


def show(result: Table2) -> Exhibit:
    """A forest plot of the honest protocol for each generator, and a table for each protocol."""
    figures, shown, lines = {}, {}, []
    for generator, table in result.generators.items():
        entries = [_entry(generator, line) for line in table.lines["honest"]]
        title = f"{label(generator)}, honest protocol"
        figures[f"table2-{slug(generator)}"] = draw_forest(entries, title=title)
        for protocol, of_protocol in table.lines.items():
            words = pd.DataFrame((_words(generator, line) for line in of_protocol), dtype=object)
            shown[f"table2-{slug(generator)}-{protocol}"] = words
            lines += [row for line in of_protocol for row in _numbers(generator, protocol, line)]
    shown["table2-published"] = _published_words()
    tables = {"table2": pd.DataFrame(lines), "table2-chosen": _chosen(result), "table2-ahead": _ahead(result)}
    return Exhibit(figures, tables, shown)


def _entry(generator: str, line: Line) -> Entry:
    paper = _reported(generator, line)
    kind: Literal["control", "detector"] = "control" if line.kind == "control" else "detector"
    return Entry(_name(line), kind, line.metrics, paper.metrics if paper else {})


def _reported(generator: str, line: Line) -> Row | None:
    return published(line.classifier, generator) if COMPARED.get(line.classifier) == line.vector else None


def _name(line: Line) -> str:
    return f"{line.name} (ours)" if line.kind == "ours" else line.name


def _words(generator: str, line: Line) -> dict[str, str]:
    paper = _reported(generator, line)
    escape = {"control": emphasised, "best": strong}.get(line.kind, text)
    return {
        "": escape(_name(line)),
        **{title: with_interval(line.metrics[name]) for name, title in METRICS.items()},
        "paper: accuracy": percent(paper.accuracy) if paper else "",
        "paper: F1": percent(paper.f1) if paper else "",
    }


def _numbers(generator: str, protocol: str, line: Line) -> list[dict[str, Any]]:
    paper = _reported(generator, line)
    reported = paper.metrics if paper else {}
    names = {"generator": generator, "protocol": protocol, "name": line.name, "kind": line.kind}
    rows = metric_rows(line.metrics, **names)
    return [row | {"paper": reported.get(str(row["metric"])), "leaks": line.leaks} for row in rows]


def _chosen(result: Table2) -> pd.DataFrame:
    return pd.DataFrame(
        {"generator": generator, "name": line.name, "chosen": chosen, "folds": folds}
        for generator, table in result.generators.items()
        for line in table.lines["honest"]
        for chosen, folds in line.chosen.items()
    )


def _ahead(result: Table2) -> pd.DataFrame:
    """By what the best of the paper's own is more accurate than the best control, paired."""
    targets = {name: table.target for name, table in result.generators.items()}
    return pd.DataFrame(
        [
            {"generator": name, "less": one.control, **one.over_control.model_dump()}
            for name, one in targets.items()
            if one is not None
        ],
        columns=["generator", "less", *Interval.model_fields],
    )


def _published_words() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "classifier": row.classifier,
            "generator": row.generator,
            "kind": "LRP4RAG" if row.kind == "lrp4rag" else row.kind,
            **{METRICS[name]: percent(value) for name, value in row.metrics.items()},
        }
        for row in TABLE_2
    )
