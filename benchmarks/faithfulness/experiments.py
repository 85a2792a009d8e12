"""The three experiments as data: which cases, which measurement, which figures are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.faithfulness.ablation import centred, measure_ablation, spearman
from benchmarks.faithfulness.cases import Case
from benchmarks.faithfulness.methods import OURS, Attributor
from benchmarks.faithfulness.needle import measure_needle
from benchmarks.faithfulness.perturbation import measure_perturbation
from benchmarks.faithfulness.rows import Rows
from benchmarks.faithfulness.sample import Sample
from benchmarks.faithfulness.statistics import Comparison, Draw, Statistic, compare, mean_of
from lrp4rag.progress import track

Row = dict[str, Any]
Measure = Callable[[Sample, Attributor, list[str]], dict[str, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """`measures` are averaged over samples; `title` says them in words, with unit and chance level."""

    name: str
    measure: Measure
    titles: Mapping[str, str]


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "needle",
            measure_needle,
            {
                "mass": "positive relevance on the planted passage, share of all passages'",
                "pointing": "pointing game: the planted passage has most relevance",
                "recall": "gold tokens among the top 10 % of the passages' tokens",
            },
        ),
        Experiment(
            "perturbation",
            measure_perturbation,
            {"area": "area between the LeRF and MoRF curves of the target logit, in logits"},
        ),
        Experiment(
            "ablation",
            measure_ablation,
            {
                "spearman": "rank correlation of relevance and drop over a prompt's passages, mean",
                "pooled": "rank correlation over all passages, each prompt's mean subtracted",
            },
        ),
    )
}


def run(
    experiment: Experiment,
    cases: list[Case],
    attributor: Attributor,
    methods: list[str],
    rows: Rows,
    limit: int,
) -> None:
    """Measure what the rows lack, sample by sample."""

    def steps() -> Iterator[None]:
        for case in cases:
            missing = rows.missing(experiment.name, case.id, methods)
            if missing:
                sample = Sample.of(case, attributor.reader, limit)
                rows.add(experiment.name, case.id, experiment.measure(sample, attributor, missing))
            yield

    for _ in track(steps(), len(cases), experiment.name):
        pass


def evaluate(
    experiment: Experiment, samples: list[str], methods: list[str], rows: Rows
) -> dict[str, Comparison]:
    """Each measure's comparison of the methods, over these samples."""
    found = {method: rows.of(experiment.name, samples, method) for method in methods}
    return {
        measure: compare(
            {method: _statistic(measure, found[method]) for method in methods}, len(samples), OURS
        )
        for measure in experiment.titles
    }


def _statistic(measure: str, rows: list[Row]) -> Statistic:
    if measure != "pooled":
        return mean_of([row[measure] for row in rows])
    relevance = centred([row["relevance"] for row in rows])
    drops = centred([row["drop"] for row in rows])

    def pooled(draw: Draw) -> float:
        return spearman(
            np.concatenate([relevance[k] for k in draw]), np.concatenate([drops[k] for k in draw])
        )

    return pooled
