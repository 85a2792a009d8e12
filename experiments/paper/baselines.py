"""The baselines of Table 2 (a prompt, SelfCheckGPT, a fine-tuned model) on our rows, under both protocols.

They are systems of the comparison, with the reader as their model: small ones, and not the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from experiments.metrics import compare
from experiments.numbers import slug
from experiments.paper.context import Context, Exhibit, Note, metric_rows
from experiments.paper.data import Subset
from experiments.paper.table2 import best_of
from experiments.published import RESPONSES, TABLE_2
from experiments.systems.comparison import FINE_TUNED
from experiments.systems.finetuned import TRAINING
from experiments.systems.folds import FoldRunner, sample_of
from experiments.systems.registry import baseline_named
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.numbers import METRICS, difference, percent, with_interval
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import THRESHOLD, Outcome

SHOWN = ("accuracy", "precision", "recall", "f1")
NOTHING = Interval(value=None, low=None, high=None)
USUAL = ("prompt-judge", "selfcheck-ngram", "selfcheck-prompt", "fine-tuned-llm")
"""Those that the paper's evaluation asks for."""
AHEAD = "relevance's best less it: accuracy"
"""Of the table of numbers, beside metrics."""
FREQUENT, LEARNED, STEPS = "accuracy of the more frequent class", "responses learned from", "steps"
PAPERS = {"prompt": "prompt", "chainpoll": "prompt", "selfcheck": "SelfCheckGPT", "fine-tuned": "fine-tuned"}
"""How the paper calls its kind of a baseline, by how our name of it begins."""


@dataclass(frozen=True, slots=True)
class Row:
    """A baseline on `rows` responses of a generator, flagged from a probability of 0.5.

    `metrics` and the part `answered` (of which it had something to go by) are by protocol. `ahead` is the
    accuracy of the paper's best on relevance less the baseline's, in the honest folds: of
    the same rows, learned from these rows only. `learned` has the responses, on average of the folds, that
    weights are trained on, and `steps` those of that training; both are empty where none are.
    """

    name: str
    title: str
    rows: int
    majority: float
    metrics: dict[str, Metrics]
    answered: dict[str, float]
    ahead: Interval
    learned: dict[str, int]
    steps: dict[str, int]


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baselines of each generator."""

    generators: dict[str, tuple[Row, ...]]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Baselines:
    """Those that were named; one by one in this process, since models use all cores.

    Raises `InputError` where the store lacks what one reads, or a package is missing, before any is run.
    """
    missing = [name for name in USUAL if name not in context.baselines]
    options = " ".join(f"--baseline {name}" for name in missing)
    why = "they were not named here: a slow one takes minutes to hours a fold"
    notes = (
        Note(f"Table 2's baselines {', '.join(missing)}", why, f"python -m experiments reproduce {options}"),
    )
    resources = context.resources
    if resources is None:
        return Baselines({}, notes)
    runners = {
        name: FoldRunner(subset.rows, tokens_of(subset.rows, {}), np.arange(len(subset)), resources)
        for name, subset in context.subsets.items()
    }
    for runner in runners.values():
        runner.check({name: baseline_named(name) for name in context.baselines})
    rows = {
        name: tuple(_row(context, subset, runners[name], *each) for each in context.baselines.items())
        for name, subset in context.subsets.items()
    }
    return Baselines(rows, notes if missing else ())


def _row(context: Context, subset: Subset, runner: FoldRunner, name: str, sources: int) -> Row:
    baseline, settings = baseline_named(name), context.settings
    slow = baseline.facts.slow
    sample = sample_of(subset.rows, sources, [subset.generator]) if slow else runner.sample
    part = subset.select(sample) if slow else subset
    metrics, answered, learned, ahead = {}, {}, {}, NOTHING
    for protocol in settings.protocols:
        # A baseline that is trained or samples takes long: its folds are drawn once.
        scores = replace(runner, sample=sample, protocol=replace(protocol, repeats=1)).run(name, baseline)
        probabilities = scores.outcome.probabilities[:, sample]
        # As relevance decides: a threshold of its own would be chosen for another metric than accuracy.
        outcome = Outcome(probabilities, probabilities >= THRESHOLD)
        metrics[protocol.name] = outcome_metrics(outcome, *part.truth, resamples=settings.resamples)
        answered[protocol.name] = float(scores.answered[sample].mean())
        if name == FINE_TUNED:
            learned[protocol.name] = scores.trained_on
        if protocol.nested:
            (best,) = context.outcomes([best_of(part, settings.by_accuracy)], "baselines")
            ahead = compare(best, outcome, *part.truth, resamples=settings.resamples)["accuracy"]
    majority = float(max(part.prevalence, 1 - part.prevalence))
    steps = {protocol: TRAINING.steps(count) for protocol, count in learned.items()}
    return Row(name, baseline.facts.title, len(sample), majority, metrics, answered, ahead, learned, steps)


def show(result: Baselines) -> Exhibit:
    lines, shown = [], {}
    for generator, rows in result.generators.items():
        words = pd.DataFrame(_words(generator, rows), dtype=object)
        shown[f"baselines-{slug(generator)}"] = words
        for row in rows:
            for protocol, metrics in row.metrics.items():
                names = {"generator": generator, "protocol": protocol, "name": row.name, "rows": row.rows}
                lines += metric_rows(metrics, **names)
                counts = {FREQUENT: row.majority} | (
                    {LEARNED: row.learned[protocol], STEPS: row.steps[protocol]} if row.learned else {}
                )
                numbers = {
                    metric: Interval(value=value, low=None, high=None) for metric, value in counts.items()
                }
                lines += metric_rows(numbers, **names)
            names = {"generator": generator, "protocol": "honest", "name": row.name, "rows": row.rows}
            lines += metric_rows({AHEAD: row.ahead}, **names)
    return Exhibit({}, {"baselines": pd.DataFrame(lines)} if lines else {}, shown)


def _training(row: Row, protocol: str) -> str:
    if protocol not in row.learned:
        return ""
    return f", {row.steps[protocol]} steps on {row.learned[protocol]} responses a fold"


def _words(generator: str, rows: Sequence[Row]) -> list[dict[str, str]]:
    words = [
        {
            "": row.title + _training(row, protocol),
            "protocol": protocol,
            "responses": str(row.rows),
            **{METRICS[name]: with_interval(metrics[name]) for name in SHOWN},
            "the more frequent class": percent(row.majority),
            "relevance's best less it, accuracy": difference(row.ahead) if protocol == "honest" else "",
        }
        for row in rows
        for protocol, metrics in row.metrics.items()
    ]
    kinds = {kind for row in rows for start, kind in PAPERS.items() if row.name.startswith(start)}
    return words + [
        {
            "": f"{one.classifier}, published",
            "protocol": "paper",
            "responses": str(RESPONSES),
            **{METRICS[name]: f"{getattr(one, name):.3f}" for name in SHOWN},
            "the more frequent class": percent(max(one.prevalence, 1 - one.prevalence)),
            "relevance's best less it, accuracy": "",
        }
        for one in TABLE_2
        if one.kind == "baseline" and one.generator == generator and one.classifier.split()[0] in kinds
    ]
