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
LOG_ODDS: dict[str, Callable[[Entailment], float]] = {
    "unsupported": lambda entailment: entailment.unsupported,
    "contradicted": lambda entailment: entailment.contradicted,
    "words": lambda entailment: entailment.highest(),
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
    of_model = log_odds_of(model, pairs, f"read by {model.published.name}")
    of_comparer = log_odds_of(bundled, pairs, "read by the comparer")
    metrics, kinds = figures(of_model, of_comparer, pairs, resamples)
    return Calibration(
        model=model.place,
        revision=model.published.revision,
        weights=model.published.weights,
        settings=model.settings,
        labels=model.labels,
        comparer=bundled.digest,
        scales=fit_scales(of_model, of_comparer, pairs),
        seen=tuple(sorted({example.content_hash for example in examples})),
        figures={
            "set": SET,
            "every": every,
            "sources": len({example.source for example in examples}),
            "sentences": len(pairs),
            "wrong": sum(pair.wrong for pair in pairs),
            "metrics": metrics,
            "kinds": kinds,
        },
        package=package_versions()["lrp4rag"],
    )


def log_odds_of(model: EntailmentModel, pairs: Sequence[LabelledPair], label: str) -> dict[str, Numbers]:
    """Read pairs by what did not learn from their sources, and return the log odds of each, by `LOG_ODDS`."""
    groups = [(source, list(of_source)) for source, of_source in groupby(pairs, key=lambda pair: pair.source)]
    entailments = list[Entailment]()
    for source, of_source in track(groups, len(groups), label):
        entailments += model([pair.pair for pair in of_source], source)
    return {name: np.array([read(each) for each in entailments]) for name, read in LOG_ODDS.items()}


def fit_scales(
    of_model: Mapping[str, Numbers], of_comparer: Mapping[str, Numbers], pairs: Sequence[LabelledPair]
) -> Scales:
    """Fit the probability of a fault at a model's log odds and at the comparer's, and let the one scale give
    what the other does. Raises `InputError` where a model's log odds do not rise with faults."""
    wrong = np.array([pair.wrong for pair in pairs])
    every = np.ones(len(pairs), dtype=bool)
    # Of others it may be a contradiction or not.
    certain = np.array([pair.label in ("e", "c") for pair in pairs])
    rows = {"unsupported": every, "contradicted": certain, "words": every}
    scales = {
        name: _scale(of_model[name][chosen], of_comparer[name][chosen], wrong[chosen], name)
        for name, chosen in rows.items()
    }
    return Scales(**scales)


def _scale(of_model: Numbers, of_comparer: Numbers, wrong: Flags, name: str) -> Scale:
    mine, theirs = Sigmoid.fit(of_model, wrong), Sigmoid.fit(of_comparer, wrong)
    if theirs.slope <= 0:
        raise InputError(
            f"{len(wrong)} sentences are too few: not even the comparer's log odds of '{name}' are higher "
            "where they are wrong; read the answers to more questions (--every 1)"
        )
    if mine.slope <= 0:
        words = f"the model's log odds of '{name}'"
        if mannwhitneyu(of_model[wrong], of_model[~wrong], alternative="less").pvalue < BY_CHANCE:
            raise InputError(
                f"{words} are lower where sentences are wrong: its labels stand for other outputs (--labels)"
            )
        raise InputError(f"{words} do not tell wrong sentences from right ones; take another model")
    return Scale(slope=mine.slope / theirs.slope, offset=(mine.offset - theirs.offset) / theirs.slope)


def figures(
    of_model: Mapping[str, Numbers],
    of_comparer: Mapping[str, Numbers],
    pairs: Sequence[LabelledPair],
    resamples: int = RESAMPLES,
) -> tuple[dict[str, Metrics], dict[str, Metrics]]:
    """Return what is held out of each fold, with intervals over sources. Metrics of sentences, faulty above
    0: by the model as it is (`before`), on the comparer's scale (`after`), and by the comparer. Of faults by
    kind the part above what 6 % of right sentences of other folds reach, by both. Raises `InputError` for too
    few sources."""
    wrong, sources = np.array([pair.wrong for pair in pairs]), np.array([pair.source for pair in pairs])
    kinds = np.array([pair.kind for pair in pairs])
    model, bundled = of_model["unsupported"], of_comparer["unsupported"]
    after = np.zeros(len(pairs))
    flagged = {name: np.zeros(len(pairs), bool) for name in ("model", "the comparer")}
    for train, test in grouped_folds(wrong, sources, FOLDS, 0):
        training = [pairs[k] for k in train]
        scales = fit_scales(
            {name: scores[train] for name, scores in of_model.items()},
            {name: scores[train] for name, scores in of_comparer.items()},
            training,
        )
        after[test] = scales.unsupported(model[test])
        for scores, name in ((model, "model"), (bundled, "the comparer")):
            bar = np.quantile(scores[train][~wrong[train]], 1 - FALSE_ALARMS)
            flagged[name][test] = scores[test] > bar
    draws, metrics = Draws.of(sources, resamples), dict[str, Metrics]()
    for name, scores in {"before": model, "after": after, "the comparer": bundled}.items():
        measure = partial(weighted_metrics, wrong, expit(scores), scores > 0)
        intervals = intervals_of(draws.values(measure))
        metrics[name] = {each: intervals[each] for each in MEASURES}
    faults_by_kind = {kind: wrong & (kinds == kind) for kind in sorted(set(kinds[wrong].tolist()))}
    faults_by_kind = {kind: faults for kind, faults in faults_by_kind.items() if faults.sum() >= FEWEST}
    counts: dict[str, Any] = {
        f"{kind}/{name}": ((faults & above).astype(int), faults.astype(int))
        for kind, faults in faults_by_kind.items()
        for name, above in flagged.items()
    }
    shares = ratios(counts, sources, resamples=resamples) if counts else {}
    return metrics, {kind: {name: shares[f"{kind}/{name}"] for name in flagged} for kind in faults_by_kind}
