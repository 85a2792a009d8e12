"""Put a published model on the scale of the comparer that comes with the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import mannwhitneyu

from lrp4rag.classifiers.calibration import Sigmoid, grouped_folds
from lrp4rag.classifiers.card import Metrics, package_versions
from lrp4rag.reader.comparer import Entailment, EntailmentModel, bundled_comparer
from lrp4rag.reader.published import Calibration, PublishedComparer, Scale, Scales
from lrp4rag.training.labelled_pairs import (
    FALSE_ALARMS,
    FEWEST,
    LabelledPair,
    answer_pairs,
    distinct,
    one_in,
)
from lrp4rag.training.metrics import RESAMPLES, Draws, intervals_of, ratios, weighted_metrics
from lrp4rag.training.sets import load_set
from lrp4rag.util.errors import InputError
from lrp4rag.util.progress import track

SET, FOLDS = "everyday", 5
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
READ: dict[str, Callable[[Entailment], float]] = {
    "unsupported": lambda one: one.unsupported,
    "contradicted": lambda one: one.contradicted,
    "words": lambda one: one.highest(),
}
"""What each of `Scales` is of."""
BY_CHANCE = 0.01
"""From this p-value on, lower log odds of wrong sentences may be chance (Mann-Whitney)."""
MEASURES = ("auroc", "balanced_accuracy", "ece")


def calibrate(
    name: str,
    labels: Sequence[str] = (),
    *,
    every: int = 8,
    device: str | None = None,
    resamples: int = RESAMPLES,
) -> Calibration:
    """Put a model, by its hub id or folder, on the scale of the comparer that comes with the package, by the
    sentences of answers to one in so many questions of `SET`. `labels` are as for `PublishedComparer.load`.

    Raises `InputError` where the model or the comparer cannot be loaded, the model does not tell what is
    wrong, and for too few questions.
    """
    model, bundled = PublishedComparer.load(name, labels, device), bundled_comparer()
    examples = one_in(load_set(Path(SET)), every)
    pairs = distinct(answer_pairs(examples, SET))
    own = log_odds_of(model, pairs, f"read by {model.published.name}")
    others = log_odds_of(bundled, pairs, "read by the comparer")
    metrics, kinds = figures(own, others, pairs, resamples)
    return Calibration(
        model=model.place,
        revision=model.published.revision,
        weights=model.published.weights,
        settings=model.settings,
        labels=model.labels,
        comparer=bundled.digest,
        scales=fit_scales(own, others, pairs),
        seen=tuple(sorted({one.content_hash for one in examples})),
        figures={
            "set": SET,
            "every": every,
            "sources": len({one.source for one in examples}),
            "sentences": len(pairs),
            "wrong": sum(one.wrong for one in pairs),
            "metrics": metrics,
            "kinds": kinds,
        },
        package=package_versions()["lrp4rag"],
    )


def log_odds_of(model: EntailmentModel, pairs: Sequence[LabelledPair], label: str) -> dict[str, Numbers]:
    """Read pairs by what did not learn from their sources, and return the log odds of each, by `READ`."""
    groups = [(source, list(some)) for source, some in groupby(pairs, key=lambda one: one.source)]
    found = list[Entailment]()
    for source, some in track(groups, len(groups), label):
        found += model([one.pair for one in some], source)
    return {name: np.array([read(one) for one in found]) for name, read in READ.items()}


def fit_scales(
    own: Mapping[str, Numbers], others: Mapping[str, Numbers], pairs: Sequence[LabelledPair]
) -> Scales:
    """Fit the probability of a fault at a model's log odds and at the comparer's (`others`), and let the one
    scale give what the other does. Raises `InputError` where a model's log odds do not rise with faults."""
    wrong = np.array([one.wrong for one in pairs])
    every = np.ones(len(pairs), dtype=bool)
    known = np.array([one.label in ("e", "c") for one in pairs])  # of others it may be a contradiction or not
    rows = {"unsupported": every, "contradicted": known, "words": every}
    scales = {
        name: _scale(own[name][some], others[name][some], wrong[some], name) for name, some in rows.items()
    }
    return Scales(**scales)


def _scale(own: Numbers, others: Numbers, wrong: Flags, name: str) -> Scale:
    mine, theirs = Sigmoid.fit(own, wrong), Sigmoid.fit(others, wrong)
    if theirs.slope <= 0:
        raise InputError(
            f"{len(wrong)} sentences are too few: not even the comparer's log odds of '{name}' are higher "
            "where they are wrong; read the answers to more questions (--every 1)"
        )
    if mine.slope <= 0:
        words = f"the model's log odds of '{name}'"
        if mannwhitneyu(own[wrong], own[~wrong], alternative="less").pvalue < BY_CHANCE:
            raise InputError(
                f"{words} are lower where sentences are wrong: its labels stand for other outputs (--labels)"
            )
        raise InputError(f"{words} do not tell wrong sentences from right ones; take another model")
    return Scale(slope=mine.slope / theirs.slope, offset=(mine.offset - theirs.offset) / theirs.slope)


def figures(
    own: Mapping[str, Numbers],
    others: Mapping[str, Numbers],
    pairs: Sequence[LabelledPair],
    resamples: int = RESAMPLES,
) -> tuple[dict[str, Metrics], dict[str, Metrics]]:
    """Return what is held out of each fold, with intervals over sources. Metrics of sentences, faulty above
    0: by the model as it is (`before`), on the comparer's scale (`after`), and by the comparer. Of faults by
    kind the part above what 6 % of right sentences of other folds reach, by both. Raises `InputError` for too
    few sources."""
    wrong, sources = np.array([one.wrong for one in pairs]), np.array([one.source for one in pairs])
    kinds = np.array([one.kind for one in pairs])
    model, bundled = own["unsupported"], others["unsupported"]
    after = np.zeros(len(pairs))
    flagged = {name: np.zeros(len(pairs), bool) for name in ("model", "the comparer")}
    for train, test in grouped_folds(wrong, sources, FOLDS, 0):
        some = [pairs[k] for k in train]
        scales = fit_scales(
            {n: a[train] for n, a in own.items()}, {n: a[train] for n, a in others.items()}, some
        )
        after[test] = scales.unsupported(model[test])
        for scores, name in ((model, "model"), (bundled, "the comparer")):
            bar = np.quantile(scores[train][~wrong[train]], 1 - FALSE_ALARMS)
            flagged[name][test] = scores[test] > bar
    draws, metrics = Draws.of(sources, resamples), dict[str, Metrics]()
    for name, scores in {"before": model, "after": after, "the comparer": bundled}.items():
        measure = partial(weighted_metrics, wrong, expit(scores), scores > 0)
        found = intervals_of(draws.values(measure))
        metrics[name] = {one: found[one] for one in MEASURES}
    parts = {kind: wrong & (kinds == kind) for kind in sorted({one.kind for one in pairs if one.wrong})}
    parts = {kind: part for kind, part in parts.items() if part.sum() >= FEWEST}
    counts: dict[str, Any] = {
        f"{kind}/{name}": ((part & of).astype(int), part.astype(int))
        for kind, part in parts.items()
        for name, of in flagged.items()
    }
    shares = ratios(counts, sources, resamples=resamples) if counts else {}
    return metrics, {kind: {name: shares[f"{kind}/{name}"] for name in flagged} for kind in parts}
