"""Cross-validation under a protocol: each row is judged by a model chosen and fitted without its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lrp4rag.classifiers.calibration import (
    Candidate,
    Groups,
    Labels,
    Scores,
    fit,
    fit_best,
    margin_of,
    probability_of,
)
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.util.errors import InputError

THRESHOLD = 0.5
"""The probability from which a row is flagged."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The verdicts of a protocol on R rows.

    * `probabilities` (repeats, R): of a hallucination, each from a fold that did not learn from the row.
    * `flagged` (repeats, R): the decisions.
    * `chosen`: the candidate's label, for every fold of every repeat.
    * `leaks`: how many rows were judged by a model that learned from their source; a report of the
      outcome must show them.
    """

    probabilities: Scores
    flagged: NDArray[np.bool_]
    chosen: tuple[str, ...] = ()
    leaks: int = 0

    def select(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Outcome:
        """Keep some of the rows (`leaks` stays that of all)."""
        return replace(self, probabilities=self.probabilities[:, rows], flagged=self.flagged[:, rows])


def cross_validated(
    candidates: Sequence[Candidate],
    labels: Labels,
    groups: Groups,
    protocol: Protocol,
    *,
    train: NDArray[np.bool_] | None = None,
    test: NDArray[np.bool_] | None = None,
    n_jobs: int = 1,
) -> Outcome:
    """Learn from the rows of `train` and judge those of `test` (booleans, (R,); by default all and all).

    For transfer between generators: the sources that are judged are held out of training as well, one
    fold of them at a time. The outcome has only the rows of `test`, in their order, and does not depend on
    `n_jobs`: a worker uses one thread. Raises `InputError` for too few sources, and for a leak that the
    protocol does not allow.
    """
    everything = np.ones(len(labels), dtype=bool)
    train, test = everything if train is None else train, everything if test is None else test
    if not candidates:
        raise InputError("there is no candidate to choose from")
    for candidate in candidates:
        if len(candidate.inputs) != len(labels):
            raise InputError(f"{candidate.label}: {len(candidate.inputs)} inputs for {len(labels)} labels")
    folds, leaks = splits(protocol, labels, groups, train, test)
    tasks = (delayed(_judged)(candidates, labels, groups, protocol, split) for split in folds)
    probabilities = np.full((protocol.repeats, len(labels)), np.nan)
    flagged = np.zeros(probabilities.shape, dtype=bool)
    chosen = []
    for split, (name, values, flags) in zip(folds, Parallel(n_jobs=n_jobs)(tasks), strict=True):
        probabilities[split.repeat, split.test] = values
        flagged[split.repeat, split.test] = flags
        chosen.append(name)
    return Outcome(probabilities[:, test], flagged[:, test], tuple(chosen), leaks)


def _judged(
    candidates: Sequence[Candidate], labels: Labels, groups: Groups, protocol: Protocol, split: Split
) -> tuple[str, Scores, NDArray[np.bool_]]:
    with threadpool_limits(1):
        if protocol.nested:
            # Without grouping every row is its own source, inside the folds as well.
            sources = groups if protocol.grouped else np.arange(len(labels)).astype(str)
            seed, scoring = protocol.seed, protocol.scoring
            best, model = fit_best(candidates, labels, sources, split.train, seed=seed, scoring=scoring)
            probabilities = probability_of(model, best.inputs[split.test])
            return best.label, probabilities, probabilities >= THRESHOLD
        first = candidates[0]
        model = fit(first.estimator, first.inputs[split.train], labels[split.train], groups[split.train])
        inputs = first.inputs[split.test]
        if hasattr(model, "predict_proba"):
            probabilities = probability_of(model, inputs)
        else:  # a margin becomes a score in (0, 1), which is not calibrated
            probabilities = np.asarray(expit(margin_of(model, inputs)[0]))
        return first.label, probabilities, np.asarray(model.predict(inputs), dtype=bool)
