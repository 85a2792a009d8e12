"""The baselines of Table 2 (a prompt, SelfCheckGPT, a fine-tuned model) on our rows, under both protocols.

They are systems of the comparison, with the reader as their model: small ones, and not the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.paper.context import Beside, Context, Exhibit, Note, metric_rows
from lrp4rag.experiments.paper.subset import Subset
from lrp4rag.experiments.paper.table2 import best_of
from lrp4rag.experiments.published import TABLE_2
from lrp4rag.experiments.systems.comparison.folds import FoldRunner, sample_of
from lrp4rag.experiments.systems.registry import baseline_named
from lrp4rag.report.numbers import METRICS, difference, percent, slug, with_interval
from lrp4rag.training.cache import Cache
from lrp4rag.training.folds import Protocol
from lrp4rag.training.metrics import compare, outcome_metrics
from lrp4rag.training.tokens import tokens_of

SHOWN = ("accuracy", "precision", "recall", "f1")
USUAL = ("prompt-judge", "selfcheck-ngram", "selfcheck-prompt", "fine-tuned-llm")
"""Those that the paper's evaluation asks for."""
PAPERS = {"prompt": "prompt", "chainpoll": "prompt", "selfcheck": "SelfCheckGPT", "fine-tuned": "fine-tuned"}
"""How the paper calls its kind of a baseline, by how our name of it begins."""


@dataclass(frozen=True, slots=True)
class Row:
    """A baseline on `rows` responses of a generator, a part `answered` of which it had something to go by.

    `metrics` are by protocol; `ahead` is the accuracy of the paper's best on relevance less the baseline's,
    both in the honest folds, on the same rows (None without them).
    """

    name: str
    title: str
    rows: int
    answered: float
    majority: float
    metrics: dict[str, Metrics]
    ahead: Interval | None


@dataclass(frozen=True, slots=True)
class Baselines:
    generators: dict[str, tuple[Row, ...]]
    left_out: tuple[Note, ...]


def measure(context: Context) -> Baselines:
    """Those that were named; one by one in this process, since models use all cores."""
    named = () if context.beside is None else context.beside.names
    missing = [name for name in USUAL if name not in named]
    options = " ".join(f"--baseline {name}" for name in missing)
    notes = (Note(f"Table 2's baselines {', '.join(missing)}", f"lrp4rag experiments reproduce {options}"),)
    if context.beside is None:
        return Baselines({}, notes)
    found = {name: _of(context, context.beside, subset) for name, subset in context.subsets.items()}
    return Baselines(found, notes if missing else ())


def _of(context: Context, beside: Beside, subset: Subset) -> tuple[Row, ...]:
    settings, rows = context.settings, subset.rows
    tokens, cache = tokens_of(rows, {}), Cache.open(beside.folder / "folds")
    sample = sample_of(rows, beside.sources, [subset.generator])
    (best,) = context.outcomes([best_of(subset, settings.by_accuracy)], "baselines")
    made = []
    for name in beside.names:
        baseline = baseline_named(name)
        own = sample if baseline.facts.slow else np.arange(len(rows))
        given = subset.labels[own], subset.groups[own]
        metrics, ahead, answered = {}, None, 1.0
        for protocol in (_once(getattr(settings, each)) for each in settings.protocols):
            runner = FoldRunner(rows, tokens, sample, beside.resources, cache, protocol)
            runner.check({name: baseline})
            scores = runner.system(name, baseline).run()
            outcome = scores.outcome.select(own)
            metrics[protocol.name] = outcome_metrics(outcome, *given, resamples=settings.resamples)
            if protocol.nested:
                ours = replace(best, chosen=()).select(own)
                ahead = compare(ours, outcome, *given, resamples=settings.resamples)["accuracy"]
            answered = float(scores.answered[own].mean())
        majority = _majority(given[0])
        made.append(Row(name, baseline.facts.title, len(own), answered, majority, metrics, ahead))
    return tuple(made)


def _once(protocol: Protocol) -> Protocol:
    """A baseline that is trained or samples takes long: its folds are drawn once."""
    return replace(protocol, repeats=1)


def _majority(labels: NDArray[np.bool_]) -> float:
    return float(max(labels.mean(), 1 - labels.mean()))


def show(result: Baselines) -> Exhibit:
    lines, shown = [], {}
    for generator, rows in result.generators.items():
        words = pd.DataFrame(_words(generator, rows), dtype=object)
        shown[f"baselines-{slug(generator)}"] = words
        for row in rows:
            for protocol, metrics in row.metrics.items():
                names = {"generator": generator, "protocol": protocol, "name": row.name, "rows": row.rows}
                lines += metric_rows(metrics, **names)
    return Exhibit({}, {"baselines": pd.DataFrame(lines)} if lines else {}, shown)


def _words(generator: str, rows: Sequence[Row]) -> list[dict[str, str]]:
    words = [
        {
            "": row.title,
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
            "responses": "989",
            **{METRICS[name]: f"{getattr(one, name):.3f}" for name in SHOWN},
            "the more frequent class": percent(max(one.prevalence, 1 - one.prevalence)),
            "relevance's best less it, accuracy": "",
        }
        for one in TABLE_2
        if one.kind == "baseline" and one.generator == generator and one.classifier.split()[0] in kinds
    ]
