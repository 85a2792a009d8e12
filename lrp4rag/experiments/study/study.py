"""A study: which features tell made-up text at what cost, what relevance adds, and how far it carries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from lrp4rag.classifiers.card import Metrics
from lrp4rag.classifiers.pooling import TOPS, pooled
from lrp4rag.classifiers.token_model import token_probabilities
from lrp4rag.experiments.study import plan
from lrp4rag.experiments.study.whole_gain import whole_gain
from lrp4rag.features.blocks import blocks_named
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import (
    ALL,
    POOLED,
    RELEVANCE_VECTOR,
    WHOLE,
    Localisation,
    localisation,
)
from lrp4rag.training.metrics import Reliability, compare, outcome_metrics, reliability
from lrp4rag.training.rows import Rows
from lrp4rag.training.tokens import Located
from lrp4rag.training.trials import Workshop

BESIDE = (RELEVANCE_VECTOR, POOLED, *WHOLE, "six lexical features", "log-probability", "hidden state")
SECTIONS = ("ways", "gain", "learners", "curve", "transfer")
PROTOCOL = ONCE
ANOTHER = "another's responses"


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """By generator unless told otherwise; sections that were not asked for are empty.

    `ways`, `learners` (of `plan.BY_LEARNER`) and `transfer` have everything that localisation has; `poolings`
    has AUROCs of the full model's responses by how their score is made; `gain` has metrics of the models of
    `plan.GAIN` and, under "A - B", their paired differences; `curve` has metrics by number of sources;
    `reliability` is of the full model.
    """

    ways: Localisation
    poolings: dict[str, dict[str, float]]
    reliability: dict[str, Reliability]
    gain: dict[str, dict[str, Metrics]]
    learners: Localisation | None
    curve: dict[int, dict[str, Metrics]]
    transfer: Localisation | None
    sources: int


def study(
    rows: Rows, folder: Path, *, jobs: int, resamples: int, sections: tuple[str, ...] = SECTIONS
) -> Study:
    """Run it, or what of it was not run before; `folder` keeps features and finished folds.

    Raises `InputError` where the store lacks signals or states, or has too few sources.
    """
    planned = plan.trials_of(sections, rows.generators, len(set(rows.groups)))
    names = [name for trials in planned.values() for one in trials.values() for name in one.blocks]
    shop = Workshop.open(rows, folder, blocks_named(names), jobs)
    for trials in planned.values():
        for trial in trials.values():
            shop.folds(trial)  # raises now rather than after hours
    for section, trials in planned.items():  # what takes long and is kept, before what is quick and is not
        shop.run(trials, section)
    ways = shop.run(plan.WAYS, "ways")
    full = ways[plan.FULL].outcome.probabilities[0]
    parts = rows.by_generator
    return Study(
        ways=_judged(shop, ways, BESIDE, resamples),
        poolings={name: _poolings(shop, ways[plan.FULL], part) for name, part in parts.items()},
        reliability={name: reliability(rows.labels[part], full[part]) for name, part in parts.items()},
        gain=_gain(shop, resamples) if "gain" in sections else {},
        learners=_learners(shop, resamples) if "learners" in sections else None,
        curve=_curve(shop, ways[plan.FULL], resamples) if "curve" in sections else {},
        transfer=_transfer(shop, ways[plan.FAST], resamples) if "transfer" in sections else None,
        sources=len(set(rows.groups)),
    )


def _poolings(shop: Workshop, full: Located, rows: np.ndarray) -> dict[str, float]:
    """AUROC of responses by how their score is made of their tokens' log odds."""
    owner, labels = shop.tokens.owner, shop.rows.labels[rows]
    scores = {f"highest {top}": pooled(full.alone, owner, rows, top) for top in TOPS}
    scores["all tokens"] = pooled(full.alone, owner, rows, len(owner))
    spared = np.log1p(-token_probabilities(full.alone))
    scores["noisy-or"] = -np.array([spared[owner == row].sum() for row in rows])
    return {name: float(roc_auc_score(labels, score)) for name, score in scores.items()}


def _gain(shop: Workshop, resamples: int) -> dict[str, dict[str, Metrics]]:
    found = {name: one.outcome for name, one in shop.run(plan.GAIN, "gain").items()}
    found |= whole_gain(shop.rows, shop.protocol, shop.cache.jobs)
    made = {}
    everything = {ALL: np.arange(len(shop.rows))}
    for name, chosen in (shop.rows.by_generator | everything).items():
        part = shop.rows.select(chosen)
        labels, groups = part.labels, part.groups
        own = {way: outcome.select(chosen) for way, outcome in found.items()}
        metrics = {
            way: outcome_metrics(outcome, labels, groups, resamples=resamples) for way, outcome in own.items()
        }
        for first, second in plan.PAIRS:
            metrics[f"{first} - {second}"] = compare(
                own[first], own[second], labels, groups, resamples=resamples
            )
        made[name] = metrics
    return made


def _learners(shop: Workshop, resamples: int) -> Localisation:
    found = shop.run(plan.BY_LEARNER, "learners")
    return _judged(shop, found, None, resamples)


def _curve(shop: Workshop, full: Located, resamples: int) -> dict[int, dict[str, Metrics]]:
    sources = len(set(shop.rows.groups))
    trials = plan.curve(sources)
    found = shop.run({str(size): trial for size, trial in trials.items()}, "curve")
    outcomes = {size: found[str(size)].outcome for size in trials} | {sources * 4 // 5: full.outcome}
    labels, groups = shop.rows.labels, shop.rows.groups
    return {
        size: {
            name: outcome_metrics(outcome.select(part), labels[part], groups[part], resamples=resamples)
            for name, part in shop.rows.by_generator.items()
        }
        for size, outcome in outcomes.items()
    }


def _transfer(shop: Workshop, fast: Located, resamples: int) -> Localisation | None:
    trials = plan.left_out(shop.rows.generators)
    if not trials:
        return None
    another = shop.run_together(trials, "transfer")
    return _judged(shop, {"all generators": fast, ANOTHER: another}, None, resamples)


def _judged(
    shop: Workshop, found: dict[str, Located], beside: tuple[str, ...] | None, resamples: int
) -> Localisation:
    return localisation(
        shop.rows,
        shop.tokens,
        found,
        shop.protocol,
        beside=beside,
        resamples=resamples,
        jobs=shop.cache.jobs,
    )
