"""Table 2 of LRP4RAG (arXiv 2408.15533): classifiers on relevance, under two protocols, beside controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.paper.bench import Entrant, Way, control, nested, single
from lrp4rag.experiments.paper.context import Context
from lrp4rag.experiments.paper.parts import Note, Part
from lrp4rag.experiments.paper.published import TABLE_2, published
from lrp4rag.experiments.paper.settings import MATRICES, ONE_VECTOR, TWO_VECTORS, lengths_of
from lrp4rag.experiments.paper.variants import Variant, variants_of
from lrp4rag.features.parts import MATRIX
from lrp4rag.training.controls import FLAG_EVERYTHING, Setting, available, flag_everything
from lrp4rag.training.folds import Protocol
from lrp4rag.training.search import Outcome

CLASSIFIERS = ("threshold", "svm", "mlp", "forest")
ON_OURS = ("threshold", "svm")
BEST, BEST_BY_ACCURACY = "best of the paper's own", "best of the paper's own, chosen by accuracy"
BEST_OF_ALL = "best of the paper's own, rules and prompt chosen too"
MAJORITY = "majority class"

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


@dataclass(frozen=True, slots=True)
class Target:
    """The paper's best accuracy on a generator, and what comes near it on our rows.

    `best` is the best of the paper's own classifiers, chosen by accuracy inside the folds; `control` the one
    of `controls` whose accuracy is highest, and `over_control` what `best` has more than it, when its
    settings are chosen by accuracy too; `paper` is the classifier with the highest accuracy under the paper's
    protocol, and `highest` that under ours. `control`, `paper` and `highest` were chosen by looking at these
    rows. `prevalence` and `published_prevalence` are the shares of hallucinated responses.
    """

    published: float
    published_by: str
    best: Interval | None
    majority: Interval
    control: str
    controls: int
    control_accuracy: Interval
    over_control: Interval | None
    best_of_all: Interval | None
    variants: tuple[str, ...]
    paper: str
    paper_accuracy: Interval | None
    highest: str
    highest_accuracy: Interval | None
    prevalence: float
    published_prevalence: float


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


def ways_of(part: Part) -> list[Way]:
    """The paper's classifiers on its vectors and on ours, those that the rows admit."""
    made = [(classifier, vector) for vector in ONE_VECTOR for classifier in CLASSIFIERS]
    made += [(classifier, vector) for vector in TWO_VECTORS for classifier in ON_OURS]
    # The mean over segments is a third of the mean of their sum: the same threshold.
    made.remove(("threshold", "segments"))
    made += [("lstm", vector) for vector in MATRICES]
    return [Way(part, *names) for names in made if part.admits(names[1])]


def on_vectors(part: Part) -> list[Way]:
    """The paper's classifiers on R_prompt and R_response."""
    return [way for way in ways_of(part) if way.vector in ONE_VECTOR]


def on_matrices(part: Part) -> list[Way]:
    """Those on R* that contend for the best: the LSTM where the paper has a figure to hold it against.

    An LSTM that contends is trained thirty times, so it has its quicker reading only.
    """
    ways = [("svm", "matrix"), *([("lstm", "matrix_t")] if published("lstm", part.generator) else [])]
    return [Way(part, classifier, vector) for classifier, vector in ways if part.admits("matrix")]


def best_of(part: Part, protocol: Protocol) -> Entrant:
    """The best of the paper's own: classifier, vector (R_prompt, R_response, R*) and L_new are chosen."""
    name = BEST if protocol.scoring == "auroc" else BEST_BY_ACCURACY
    return nested([*on_vectors(part), *on_matrices(part)], protocol, name)


def best_of_all(context: Context, part: Part, protocol: Protocol) -> Entrant | None:
    """The same, where R_response of the other stores contends too; None without any that has all rows."""
    others = _complete(context, part)
    ways = [Way(each.part, name, "response", variant=each.name) for each in others for name in CLASSIFIERS]
    return nested([*on_vectors(part), *on_matrices(part), *ways], protocol, BEST_OF_ALL) if others else None


def _complete(context: Context, part: Part) -> list[Variant]:
    """Only what has the same rows can be chosen among."""
    return [variant for variant in variants_of(context, part) if variant.anchor is part]


def entrants_of(context: Context, part: Part, protocol: Protocol) -> list[tuple[Kind, Way | None, Entrant]]:
    """All lines of a generator under a protocol but those that need no fitting."""
    by_accuracy = context.settings.by_accuracy
    kinds: dict[str, Kind] = dict.fromkeys(TWO_VECTORS, "ours")
    shared = [(way.classifier, way.vector) for way in on_matrices(part)]
    made: list[tuple[Kind, Way | None, Entrant]] = []
    if protocol.nested:
        over_variants = best_of_all(context, part, by_accuracy)
        made += [("best", None, over_variants)] if over_variants else []
        made += [("best", None, best_of(part, each)) for each in (by_accuracy, protocol)]
    for way in ways_of(part):
        if protocol.nested:
            entrant = nested([way], protocol, share_inner=(way.classifier, way.vector) in shared)
        else:
            at = Way(part, way.classifier, way.vector, protocol.mode)
            longest = lengths_of(way.classifier, way.vector)[-1] if way.vector in MATRICES else 0
            entrant = single(at, longest or protocol.lengths[0], protocol)
        made.append((kinds.get(way.vector, "paper"), way, entrant))
    return made + [("control", None, each) for each in controls_of(part, protocol)]


def controls_of(part: Part, protocol: Protocol) -> list[Entrant]:
    names, _ = available(part.rows)
    setting = Setting.of(protocol, "svm", "response")
    return [control(part, name, setting, protocol) for name in names]


def table2(context: Context) -> Table2:
    """Raises nothing where a store lacks parts: their lines are left out, and said to be."""
    protocols = [getattr(context.settings, name) for name in context.settings.protocols]
    bench = context.bench
    # All at once, so that no core waits for the last cell of a generator.
    every = [
        entrant
        for part in context.parts.values()
        for protocol in protocols
        for _, _, entrant in entrants_of(context, part, protocol)
    ]
    bench.metrics(every, "table 2")
    generators = {}
    for name, part in context.parts.items():
        lines = {protocol.name: _lines(context, part, protocol) for protocol in protocols}
        generators[name] = GeneratorTable(
            rows=len(part),
            sources=len(set(part.groups)),
            hallucinated=int(part.labels.sum()),
            lines=lines,
            target=_target(part, lines, context),
        )
    return Table2(generators, {each.name: each.words for each in protocols}, _left_out(context))


def _lines(context: Context, part: Part, protocol: Protocol) -> tuple[Line, ...]:
    entrants, bench = entrants_of(context, part, protocol), context.bench
    found = bench.metrics([entrant for _, _, entrant in entrants], "table 2")
    outcomes = bench.outcomes([entrant for _, _, entrant in entrants], "table 2")
    lines = [
        _line(entrant.name, kind, metrics, outcome, way)
        for (kind, way, entrant), metrics, outcome in zip(entrants, found, outcomes, strict=True)
    ]
    for name, outcome in (
        (FLAG_EVERYTHING, flag_everything(part.labels, protocol)),
        (MAJORITY, majority(part, protocol)),
    ):
        lines.append(_line(name, "control", bench.metrics_of(part, outcome), outcome, None))
    return tuple(lines)


def majority(part: Part, protocol: Protocol) -> Outcome:
    """The more frequent class for every row, with its frequency as the probability."""
    probabilities = np.full((protocol.repeats, len(part)), part.prevalence)
    return Outcome(probabilities, probabilities >= 0.5)


def _line(name: str, kind: Kind, metrics: Metrics, outcome: Outcome, way: Way | None) -> Line:
    return Line(
        name=name,
        kind=kind,
        metrics=metrics,
        chosen=dict(Counter(outcome.chosen).most_common()),
        leaks=outcome.leaks,
        classifier=way.classifier if way else "",
        vector=way.vector if way else "",
    )


def _target(part: Part, lines: dict[str, tuple[Line, ...]], context: Context) -> Target | None:
    """None for a generator that the paper does not have."""
    reported = [row for row in TABLE_2 if (row.generator, row.kind) == (part.generator, "lrp4rag")]
    if not reported:
        return None
    highest = max(reported, key=lambda row: row.accuracy)
    honest, paper = lines.get("honest", ()), lines.get("paper", ())
    best, best_of_all = (
        next((line.metrics["accuracy"] for line in honest if line.name == name), None)
        for name in (BEST_BY_ACCURACY, BEST_OF_ALL)
    )
    shown = {line.name: line for line in honest or paper if line.kind == "control"}
    rivals = [line for line in shown.values() if line.name not in (MAJORITY, FLAG_EVERYTHING)]
    rival = _highest(rivals)
    by_looking = _highest([line for line in paper if line.kind == "paper"]) if paper else None
    in_folds = _highest([line for line in honest if line.kind == "paper"]) if honest else None
    return Target(
        published=highest.accuracy,
        published_by=highest.classifier,
        best=best,
        majority=shown[MAJORITY].metrics["accuracy"],
        control=rival.name,
        controls=len(rivals),
        control_accuracy=rival.metrics["accuracy"],
        over_control=_over(part, rival.name, context) if best else None,
        best_of_all=best_of_all,
        variants=tuple(variant.what for variant in _complete(context, part)),
        paper=by_looking.name if by_looking else "",
        paper_accuracy=by_looking.metrics["accuracy"] if by_looking else None,
        highest=in_folds.name if in_folds else "",
        highest_accuracy=in_folds.metrics["accuracy"] if in_folds else None,
        prevalence=part.prevalence,
        published_prevalence=highest.prevalence,
    )


def _over(part: Part, rival: str, context: Context) -> Interval:
    """The accuracy of the best less the control's, row by row."""
    settings = context.settings
    setting = Setting.of(settings.by_accuracy, "svm", "response")
    pair = (best_of(part, settings.by_accuracy), control(part, rival, setting, settings.by_accuracy))
    return context.bench.differences([pair], "table 2")[0]["accuracy"]


def _highest(lines: Sequence[Line]) -> Line:
    return max(lines, key=lambda line: line.metrics["accuracy"].value or 0.0)


def _left_out(context: Context) -> tuple[Note, ...]:
    signals = "relevance by segment, and the controls of likelihood, attention and hidden states,"
    return (
        *context.notes,
        *context.lacking("prompt", "R_prompt"),
        *context.lacking(MATRIX, "the LSTM on R*, and Figure 4,"),
        *context.lacking("signals", signals),
    )
