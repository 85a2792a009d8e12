"""A study of token detectors from one store: which features detect hallucinated tokens, at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from experiments.cache import Cache
from experiments.figures.results import draw_cost, draw_curve, draw_reliability
from experiments.metrics import Reliability, reliability
from experiments.numbers import slug
from experiments.pages import Results, View
from experiments.tokens.blocks import FAST_BLOCKS, FULL_BLOCKS, blocks_named
from experiments.tokens.controls import POOLED, RELEVANCE_VECTOR, of_responses
from experiments.tokens.learners import LEARNERS
from experiments.tokens.trials import CrossValidation, Trial
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.decision import TOPS, top_mean
from lrp4rag.report.numbers import METRICS
from lrp4rag.training.controls import WHOLE
from lrp4rag.training.localisation import ALL, Localisation, localisation
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import TokenPredictions

FULL, FAST, SEGMENTS, SIGNALS, STATE = "full", "fast", "segments", "signals", "state alone"
WAYS: dict[str, Trial] = {
    FULL: Trial(FULL_BLOCKS),
    FAST: Trial(FAST_BLOCKS),
    "quick features": Trial(("quick",)),
    SEGMENTS: Trial(("segments",)),
    SIGNALS: Trial(("signals",)),
    STATE: Trial(("state",)),
    "passages' part alone": Trial(("passages",)),
    "full and text": Trial((*FULL_BLOCKS, "text")),
    "full, generator not told": Trial(FULL_BLOCKS, know_generators=False),
}
"""From one tangent to all: accuracy against cost."""
BY_LEARNER: dict[str, Trial] = {
    name: Trial(("text", "likelihood", "relevance"), learner=name) for name in LEARNERS
}
"""Learners of single tokens, on blocks that all of them learn from in minutes."""
SIZES = (50, 100, 200, 400)
"""Sources to learn from."""
SECTIONS = ("ways", "learners", "curve", "transfer")
BESIDE = (RELEVANCE_VECTOR, POOLED, *WHOLE, "six lexical features", "log-probability", "hidden state")
RESPONSES = {name: METRICS[name] for name in ("auroc", "accuracy", "f1", "ece")}
COSTS = {
    RELEVANCE_VECTOR: "R_response",
    FAST: "fast",
    SEGMENTS: "segments",
    SIGNALS: "full",
    FULL: "full",
    STATE: "state",
}
"""By what is judged: the names of its cost, those of `benchmarks.verdict`, and `state` of a plain pass that
keeps hidden states (`benchmarks.systems`). Beside provenance states come at no cost."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """By generator unless noted; sections that were not asked for are empty.

    `ways`, `learners` (of `BY_LEARNER`) and `transfer` have everything that localisation has; `poolings` has
    AUROCs of the full model's responses by how their score is made; `curve` has metrics by number of sources;
    `reliability` is of the full model.
    """

    ways: Localisation
    poolings: dict[str, dict[str, float]]
    reliability: dict[str, Reliability]
    learners: Localisation | None
    curve: dict[int, dict[str, Metrics]]
    transfer: Localisation | None
    sources: int


def study(rows: Rows, cache: Cache, *, resamples: int, sections: tuple[str, ...] = SECTIONS) -> Study:
    """Cross-validate the trials of the sections; the ways always are.

    Raises `InputError` where the store lacks signals or states, or has too few sources.
    """
    sources = len(set(rows.groups))
    trials = trials_of(sections, rows.generators, sources)
    names = [name for group in trials.values() for trial in group.values() for name in trial.blocks]
    validation = CrossValidation.open(rows, cache, blocks_named(names))
    for group in trials.values():
        for trial in group.values():
            validation.folds(trial)  # raises now rather than after hours
    found = {
        section: validation.run(group, section) for section, group in trials.items() if section != "transfer"
    }
    ways = found["ways"]
    full, parts = ways[FULL], rows.by_generator

    def localised(predictions: dict[str, TokenPredictions], beside: tuple[str, ...] | None) -> Localisation:
        return localisation(
            rows,
            validation.tokens,
            predictions,
            validation.protocol,
            controls=None if beside is None else of_responses(beside, validation.protocol),
            resamples=resamples,
            jobs=cache.jobs,
        )

    transfer = None
    if trials.get("transfer"):
        another = validation.run_together(trials["transfer"], "transfer")
        transfer = localised({"all generators": ways[FAST], "another's responses": another}, None)
    outcomes = {int(size): one.outcome for size, one in found.get("curve", {}).items()}
    if "curve" in sections:
        outcomes[sources * 4 // 5] = full.outcome
    probabilities = full.outcome.probabilities[0]
    return Study(
        ways=localised(ways, BESIDE),
        poolings={name: _poolings(validation, full, part) for name, part in parts.items()},
        reliability={
            name: reliability(rows.labels[part], probabilities[part]) for name, part in parts.items()
        },
        learners=localised(found["learners"], None) if "learners" in sections else None,
        curve={
            size: {
                name: outcome_metrics(
                    outcome.select(part), rows.labels[part], rows.groups[part], resamples=resamples
                )
                for name, part in parts.items()
            }
            for size, outcome in outcomes.items()
        },
        transfer=transfer,
        sources=sources,
    )


def trials_of(
    sections: Iterable[str], generators: Iterable[str], sources: int
) -> dict[str, Mapping[str, Trial]]:
    """The trials of each section: sizes that there are enough sources for (four of five are learned from),
    and fast models tested on each generator that they did not learn from, where there are several."""
    names = sorted(set(generators))
    every: dict[str, Mapping[str, Trial]] = {
        "ways": WAYS,
        "learners": BY_LEARNER,
        "curve": {str(size): Trial(FULL_BLOCKS, sources=size) for size in SIZES if size < sources * 4 // 5},
        "transfer": {name: Trial(FAST_BLOCKS, judged=name) for name in names} if len(names) > 1 else {},
    }
    return {name: trials for name, trials in every.items() if name in ("ways", *sections)}


def _poolings(validation: CrossValidation, full: TokenPredictions, part: np.ndarray) -> dict[str, float]:
    """AUROC of responses by how their score is made of their tokens' log odds."""
    owner, labels = validation.tokens.owner, validation.rows.labels[part]

    def highest(top: int) -> np.ndarray:
        return np.array([top_mean(full.alone[owner == row], top) for row in part])

    scores = {f"highest {top}": highest(top) for top in TOPS} | {"all tokens": highest(len(owner))}
    spared = np.log1p(-expit(full.alone))
    scores["noisy-or"] = -np.array([spared[owner == row].sum() for row in part])
    return {name: float(roc_auc_score(labels, score)) for name, score in scores.items()}


def view(results: Results) -> View:
    """Raises `InputError` for what a study did not write."""
    found, costs = results.read(Study), results.get("forwards", dict[str, float])
    figures = {
        f"reliability-{slug(name)}": draw_reliability({FULL: line}, title=name)
        for name, line in found.reliability.items()
    }
    if found.curve:
        figures["curve"] = draw_curve(found.curve)
    responses = {name: lines for name, lines in found.ways.responses.items() if name != ALL}
    forwards = {
        way: costs[name] for way, name in COSTS.items() if name in costs and way in found.ways.responses[ALL]
    }
    if forwards:
        aurocs = {
            name: {way: metrics["auroc"] for way, metrics in lines.items()}
            for name, lines in responses.items()
        }
        figures["cost"] = draw_cost(aurocs, forwards)
    values = {
        "found": found,
        "generators": [name for name in found.ways.lines if name != ALL],
        "names": [*found.ways.lines],
        "responses": RESPONSES,
        "costs": forwards,
        "rows": found.ways.rows[ALL],
        "resamples": results.get("resamples", int),
        "protocol": results.get("protocol", str),
        "full": FULL,
        "state": STATE,
        "learners": list(BY_LEARNER),
    }
    return View(values, figures)
