"""A study: which features detect hallucinated tokens, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from experiments.metrics import Reliability, reliability
from experiments.study import plan
from experiments.tokens.blocks import blocks_named
from experiments.tokens.controls import POOLED, RELEVANCE_VECTOR, of_responses
from experiments.tokens.trials import CrossValidation
from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.decision import TOPS, top_mean
from lrp4rag.training.controls import WHOLE
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import (
    Localisation,
    localisation,
)
from lrp4rag.training.metrics import outcome_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import TokenPredictions

BESIDE = (RELEVANCE_VECTOR, POOLED, *WHOLE, "six lexical features", "log-probability", "hidden state")
SECTIONS = ("ways", "learners", "curve", "transfer")
PROTOCOL = ONCE
ANOTHER = "another's responses"


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """By generator unless noted; sections that were not asked for are empty.

    `ways`, `learners` (of `plan.BY_LEARNER`) and `transfer` have everything that localisation has; `poolings`
    has AUROCs of the full model's responses by how their score is made; `curve` has metrics by number of
    sources; `reliability` is of the full model.
    """

    ways: Localisation
    poolings: dict[str, dict[str, float]]
    reliability: dict[str, Reliability]
    learners: Localisation | None
    curve: dict[int, dict[str, Metrics]]
    transfer: Localisation | None
    sources: int


def study(
    rows: Rows, folder: Path, *, jobs: int, resamples: int, sections: tuple[str, ...] = SECTIONS
) -> Study:
    """Run what is not cached in `folder`, which keeps features and finished folds.

    Raises `InputError` where the store lacks signals or states, or has too few sources.
    """
    planned = plan.trials_of(sections, rows.generators, len(set(rows.groups)))
    names = [name for trials in planned.values() for one in trials.values() for name in one.blocks]
    validation = CrossValidation.open(rows, folder, blocks_named(names), jobs)
    for trials in planned.values():
        for trial in trials.values():
            validation.folds(trial)  # raises now rather than after hours
    for section, trials in planned.items():  # what takes long and is kept, before what is quick and is not
        validation.run(trials, section)
    ways = validation.run(plan.WAYS, "ways")
    full = ways[plan.FULL].outcome.probabilities[0]
    parts = rows.by_generator
    return Study(
        ways=_localised(validation, ways, BESIDE, resamples),
        poolings={name: _poolings(validation, ways[plan.FULL], part) for name, part in parts.items()},
        reliability={name: reliability(rows.labels[part], full[part]) for name, part in parts.items()},
        learners=_localised(validation, validation.run(plan.BY_LEARNER, "learners"), None, resamples)
        if "learners" in sections
        else None,
        curve=_curve(validation, ways[plan.FULL], resamples) if "curve" in sections else {},
        transfer=_transfer(validation, ways[plan.FAST], resamples) if "transfer" in sections else None,
        sources=len(set(rows.groups)),
    )


def _poolings(validation: CrossValidation, full: TokenPredictions, rows: np.ndarray) -> dict[str, float]:
    """AUROC of responses by how their score is made of their tokens' log odds."""
    owner, labels = validation.tokens.owner, validation.rows.labels[rows]

    def highest(top: int) -> np.ndarray:
        return np.array([top_mean(full.alone[owner == row], top) for row in rows])

    scores = {f"highest {top}": highest(top) for top in TOPS} | {"all tokens": highest(len(owner))}
    spared = np.log1p(-expit(full.alone))
    scores["noisy-or"] = -np.array([spared[owner == row].sum() for row in rows])
    return {name: float(roc_auc_score(labels, score)) for name, score in scores.items()}


def _curve(
    validation: CrossValidation, full: TokenPredictions, resamples: int
) -> dict[int, dict[str, Metrics]]:
    sources = len(set(validation.rows.groups))
    trials = plan.curve(sources)
    found = validation.run({str(size): trial for size, trial in trials.items()}, "curve")
    outcomes = {size: found[str(size)].outcome for size in trials} | {sources * 4 // 5: full.outcome}
    labels, groups = validation.rows.labels, validation.rows.groups
    return {
        size: {
            name: outcome_metrics(outcome.select(part), labels[part], groups[part], resamples=resamples)
            for name, part in validation.rows.by_generator.items()
        }
        for size, outcome in outcomes.items()
    }


def _transfer(validation: CrossValidation, fast: TokenPredictions, resamples: int) -> Localisation | None:
    trials = plan.left_out(validation.rows.generators)
    if not trials:
        return None
    another = validation.run_together(trials, "transfer")
    return _localised(validation, {"all generators": fast, ANOTHER: another}, None, resamples)


def _localised(
    validation: CrossValidation,
    found: dict[str, TokenPredictions],
    beside: tuple[str, ...] | None,
    resamples: int,
) -> Localisation:
    return localisation(
        validation.rows,
        validation.tokens,
        found,
        validation.protocol,
        controls=None if beside is None else of_responses(beside, validation.protocol),
        resamples=resamples,
        jobs=validation.cache.jobs,
    )
