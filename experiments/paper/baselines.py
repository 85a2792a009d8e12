"""The baselines of Table 2 (a prompt, SelfCheckGPT, a fine-tuned model) on our rows, under both protocols.

They are systems of the comparison, with the reader as their model: small ones, and not the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from experiments.metrics import compare
from experiments.paper.context import BaselineRun, Context, Exhibit, Note, metric_rows
from experiments.paper.subset import Subset
from experiments.paper.table2 import best_of
from experiments.published import RESPONSES, TABLE_2
from experiments.systems.comparison.compare import FINE_TUNED
from experiments.systems.comparison.folds import FoldRunner, sample_of
from experiments.systems.finetuned import TRAINING
from experiments.systems.registry import baseline_named
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.report.numbers import METRICS, difference, percent, slug, with_interval
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.tokens import tokens_of
from lrp4rag.training.validation import THRESHOLD, Outcome

SHOWN = ("accuracy", "precision", "recall", "f1")
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
    accuracy of the paper's best on relevance less the baseline's, in the honest folds (None without them): of
    the same rows, learned from these rows only. `learned` has the responses, on average of the folds, that
    weights are trained on, and `steps` those of that training; both are empty where none are.
    """

    name: str
    title: str
    rows: int
    majority: float
    metrics: dict[str, Metrics]
    answered: dict[str, float]
    ahead: Interval | None
    learned: dict[str, int]
    steps: dict[str, int]


@dataclass(frozen=True, slots=True)
class Baselines:
    """The baselines of each generator."""

    generators: dict[str, tuple[Row, ...]]
    left_out: tuple[Note, ...]


def depends_on(context: Context) -> dict[str, Any]:
    """What the section's result depends on beside the rows."""
    run = context.baselines
    if run is None:
        return {}
    settings = {name: run.resources.settings_of(baseline_named(name).facts) for name in run.sources}
    return {"baselines": settings, "sources": dict(run.sources)}


def measure(context: Context) -> Baselines:
    """Those that were named; one by one in this process, since models use all cores.

    Raises `InputError` where the store lacks what one reads, or a package is missing, before any is run.
    """
    run = context.baselines
    named = {} if run is None else run.sources
    missing = [name for name in USUAL if name not in named]
    options = " ".join(f"--baseline {name}" for name in missing)
    why = "they were not named here: a slow one takes minutes to hours a fold"
    notes = (
        Note(f"Table 2's baselines {', '.join(missing)}", why, f"python -m experiments reproduce {options}"),
    )
    if run is None:
        return Baselines({}, notes)
    runners = {name: _runners(context, run, subset) for name, subset in context.subsets.items()}
    for each in runners.values():
        each[0].check({name: baseline_named(name) for name in named})
    found = {
        name: tuple(_row(context, subset, runners[name], *each) for each in named.items())
        for name, subset in context.subsets.items()
    }
    return Baselines(found, notes if missing else ())


def _runners(context: Context, run: BaselineRun, subset: Subset) -> list[FoldRunner]:
    """One a protocol, with all rows. A baseline that is trained or samples takes long: its folds are drawn
    once."""
    settings, tokens = context.settings, tokens_of(subset.rows, {})
    sample = np.arange(len(subset))
    protocols = [replace(getattr(settings, name), repeats=1) for name in settings.protocols]
    return [FoldRunner(subset.rows, tokens, sample, run.resources, run.folds, one) for one in protocols]


def _row(context: Context, subset: Subset, runners: Sequence[FoldRunner], name: str, sources: int) -> Row:
    baseline = baseline_named(name)
    slow = baseline.facts.slow
    own = sample_of(subset.rows, sources, [subset.generator]) if slow else runners[0].sample
    given = subset.select(own) if slow else subset
    truth, resamples = (given.labels, given.groups), context.settings.resamples
    metrics, answered, ahead, learned = {}, {}, None, {}
    for runner in runners:
        scores = replace(runner, sample=own).system(name, baseline).run()
        probabilities = scores.outcome.probabilities[:, own]
        # As relevance decides: a threshold of its own would be chosen for another metric than accuracy.
        outcome = Outcome(probabilities, probabilities >= THRESHOLD)
        protocol = runner.protocol
        metrics[protocol.name] = outcome_metrics(outcome, *truth, resamples=resamples)
        answered[protocol.name] = float(scores.answered[own].mean())
        if name == FINE_TUNED:
            learned[protocol.name] = scores.trained_on
        if protocol.nested:
            folds = replace(context.settings.by_accuracy, repeats=1)
            (best,) = context.outcomes([best_of(given, folds)], "baselines")
            ahead = compare(best, outcome, *truth, resamples=resamples)["accuracy"]
    majority = float(max(given.prevalence, 1 - given.prevalence))
    steps = {protocol: TRAINING.steps(count) for protocol, count in learned.items()}
    return Row(name, baseline.facts.title, len(own), majority, metrics, answered, ahead, learned, steps)


def show(result: Baselines) -> Exhibit:
    lines, shown = [], {}
    for generator, rows in result.generators.items():
        words = pd.DataFrame(_words(generator, rows), dtype=object)
        shown[f"baselines-{slug(generator)}"] = words
        for row in rows:
            for protocol, metrics in row.metrics.items():
                names = {"generator": generator, "protocol": protocol, "name": row.name, "rows": row.rows}
                lines += metric_rows(metrics, **names)
                counts = {FREQUENT: row.majority, LEARNED: row.learned.get(protocol)}
                counts[STEPS] = row.steps.get(protocol)
                lines += metric_rows(
                    {
                        metric: Interval(value=value, low=None, high=None)
                        for metric, value in counts.items()
                        if value is not None
                    },
                    **names,
                )
            if row.ahead is not None:
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
