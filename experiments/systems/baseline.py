"""A baseline: a system that people would compare with, behind one small protocol.

`fit` learns from labelled responses and returns a `Fitted`, which scores responses. Whatever a baseline
chooses (a layer, a threshold, a sigmoid) it chooses in `fit`, from the rows it is given: the comparison calls
it once in each fold. Most baselines are one of the two kinds here: the best of some classifiers on numbers of
the store (`BestClassifier`), or on numbers that are measured for each response by itself (`Measured`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from experiments.systems.facts import Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import (
    NO_PARTS,
    Calibration,
    OutOfFold,
    PartScores,
    threshold_of,
)
from lrp4rag.classifiers.calibration import CALIBRATION_FOLDS, chosen, fit, grouped_folds, margin_of
from lrp4rag.training.controls import Candidates, logistic
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

NOTHING = "nothing: too few responses have an answer"
M_co = TypeVar("M_co", covariant=True)


class Baseline(Protocol):
    """A new one is a file with an object of this kind, and a line in the registry."""

    @property
    def facts(self) -> Facts: ...

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        """Learn from labelled rows. Raises `InputError` where there are too few sources."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """Of one response: `numbers` (K,), NaN for no answer; `suspicion` of its parts, if they are scored;
    `asked` counts the questions put to a model, `unanswered` those without a usable reply after all tries."""

    numbers: NDArray[np.float64]
    suspicion: PartScores | None = None
    asked: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Of R rows: raw `scores` (R,), NaN for no answer, `parts` if they are scored, and measurements, if
    any."""

    scores: NDArray[np.float64]
    parts: Sequence[PartScores] | None = None
    measurements: Sequence[Measurement] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """`read` scores rows without looking at labels; `calibration` turns scores into probabilities, and parts
    are marked from `threshold` on. `chosen` says in words what was chosen."""

    chosen: str
    read: Callable[[Rows, Resources], Reading]
    calibration: Calibration
    threshold: float | None


def _fit_best(
    inputs_of: Callable[[Rows, Resources], tuple[Candidates, Reading]],
    rows: Rows,
    resources: Resources,
    mark_from: float | None = None,
) -> Fitted:
    """The best candidate by inner folds. Inputs may be NaN where a response has no answer; where too few
    responses have one, no classifier is fitted and no response gets a score. `inputs_of` gives the candidates
    and a reading without scores."""
    candidates, reading = inputs_of(rows, resources)
    answered = np.flatnonzero(np.all([_finite(each.inputs) for each in candidates], axis=0))
    labels, groups = rows.labels, rows.groups
    scores = np.full(len(labels), np.nan)
    label, model = NOTHING, None
    try:
        best, outside = chosen(candidates, labels[answered], groups[answered], answered, resources.seed)
    except InputError:
        if len(answered) == len(labels):  # the rows are too few, not the answers
            raise
    else:
        if outside is None:
            raise ValueError(f"{best.label} calibrates itself: its scores are needed")
        label, scores[answered] = best.label, outside
        model = fit(best.estimator, best.inputs[answered], labels[answered], groups[answered])

    def read(rows: Rows, resources: Resources) -> Reading:
        candidates, reading = inputs_of(rows, resources)
        if model is not None:
            inputs = next(each.inputs for each in candidates if each.label == label)
            if (answered := _finite(inputs)).any():
                reading.scores[answered] = margin_of(model, inputs[answered])[0]
        return reading

    threshold = mark_from
    if reading.parts is not None and threshold is None:
        threshold = threshold_of(reading.parts, rows.examples)
    return Fitted(label, read, Calibration.of(scores, labels, rows.generators), threshold)


def _finite(inputs: np.ndarray) -> np.ndarray:
    """Which rows have numbers only, (rows,)."""
    finite: np.ndarray = np.isfinite(inputs).reshape(len(inputs), -1).all(axis=1)
    return finite


@dataclass(frozen=True, slots=True)
class BestClassifier:
    """`candidates_of` returns the candidate classifiers with their inputs, which are NaN where a response has
    no answer. Their labels must not depend on the rows."""

    facts: Facts
    candidates_of: Callable[[Rows, Resources], Candidates]

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        def inputs_of(rows: Rows, resources: Resources) -> tuple[Candidates, Reading]:
            return self.candidates_of(rows, resources), Reading(np.full(len(rows), np.nan))

        return _fit_best(inputs_of, rows, resources)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel(Generic[M_co]):
    """A model, and which of the rows (R,) are `unseen`: it did not learn from their sources."""

    model: M_co
    unseen: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measured:
    """`measure` looks at no label; logistic regression reads the numbers, whose names are `names` (K,). As
    `alternatives` each is a candidate by itself, else they are read together. With `marks` parts are scored
    too, and marked from `mark_from` on, or from the threshold of the best F1.

    With `model_of`, `measure` is given that model too. Classifier, calibration and threshold then come from
    the rows that are unseen by the model; its measurements must be kept under its name.
    """

    facts: Facts
    measure: Callable[..., list[Measurement]]
    names: Sequence[str]
    alternatives: bool = False
    marks: bool = False
    mark_from: float | None = None
    model_of: Callable[[Rows, Resources], TrainedModel[Any]] | None = None

    def fit(self, rows: Rows, resources: Resources) -> Fitted:
        if self.model_of is None:
            return self._fit(rows, resources)
        trained = self.model_of(rows, resources)
        if not trained.unseen.all():  # otherwise too few rows are named as such
            _check_unseen(rows, trained.unseen, resources.seed)
        unseen = np.flatnonzero(trained.unseen)
        fitted = self._fit(rows.select(unseen), resources, trained.model)
        inner = fitted.calibration.out_of_fold
        outside = OutOfFold(unseen[inner.rows], inner.probabilities)
        return replace(fitted, calibration=replace(fitted.calibration, out_of_fold=outside))

    def _fit(self, rows: Rows, resources: Resources, *model: Any) -> Fitted:
        def inputs_of(rows: Rows, resources: Resources) -> tuple[Candidates, Reading]:
            measurements = self.measure(rows, resources, *model)
            parts = [each.suspicion or NO_PARTS for each in measurements] if self.marks else None
            numbers = np.array([each.numbers for each in measurements])
            candidates = logistic(numbers, " and ".join(self.names))
            if self.alternatives:
                apart = (logistic(numbers[:, [k]], name) for k, name in enumerate(self.names))
                candidates = sum(apart, ())
            return candidates, Reading(np.full(len(rows), np.nan), parts, measurements)

        return _fit_best(inputs_of, rows, resources, self.mark_from)


def _check_unseen(rows: Rows, unseen: NDArray[np.bool_], seed: int) -> None:
    """Raise `InputError` where unseen sources are too few to calibrate by."""
    try:
        grouped_folds(rows.labels[unseen], rows.groups[unseen], CALIBRATION_FOLDS, seed)
    except InputError as error:
        every, few = len(set(rows.groups)), len(set(rows.groups[unseen]))
        raise InputError(
            f"of {every} sources to learn from, a model is trained on all but {few}; these calibrate it, but "
            f"{error}; extract more sources, or draw more for slow systems (--sources)"
        ) from error
