"""`Contest`: a baseline that is a choice among classifiers on some numbers of each response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrp4rag.classifiers.calibration import chosen, fit, margin_of
from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.baseline import Facts, Outside, Score
from lrp4rag.experiments.systems.calibrated import Calibration
from lrp4rag.experiments.systems.suspicion import Suspicion, marked, threshold_of
from lrp4rag.training.tabular import Contenders

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.kit import Kit
    from lrp4rag.training.rows import Rows

NOTHING = "nothing: too few responses have an answer"

Make = Callable[["Rows", "Kit"], Contenders]
Suspicions = Callable[["Rows", "Kit"], list[Suspicion]]


@dataclass(frozen=True, slots=True)
class Replies:
    """Of a model that was asked about a response: see `Score`."""

    asked: int
    unanswered: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """`make` gives the contenders, whose inputs may be NaN where a response has no answer; their labels must
    not depend on the rows. `suspicions`, where there are any, scores parts of each response without learning:
    of them only the threshold is learned, unless the system has one by definition (`mark_from`). `replies`
    tells of each response what a model was asked, if one was."""

    facts: Facts
    make: Make
    suspicions: Suspicions | None = None
    mark_from: float | None = None
    replies: Callable[[Rows, Kit], list[Replies]] | None = None

    def fit(self, rows: Rows, kit: Kit) -> Champion:
        contenders = self.make(rows, kit)
        answered = np.flatnonzero(np.all([_finite(one.inputs) for one in contenders], axis=0))
        labels, groups = rows.labels, rows.groups
        scores = np.full(len(labels), np.nan)
        label, model = NOTHING, None
        try:
            best, outside = chosen(contenders, labels[answered], groups[answered], answered, kit.seed)
        except InputError:
            if len(answered) == len(labels):  # the rows are too few, not the answers
                raise
        else:
            if outside is None:
                raise ValueError(f"{best.label} calibrates itself: a contest needs scores")
            label, scores[answered] = best.label, outside
            model = fit(best.estimator, best.inputs[answered], labels[answered], groups[answered])
        threshold = self.mark_from
        if self.suspicions is not None and threshold is None:
            threshold = threshold_of(self.suspicions(rows, kit), rows.examples)
        return Champion(self, label, model, Calibration.of(scores, labels, rows.generators), threshold)


@dataclass(frozen=True, slots=True)
class Champion:
    """The contender that was chosen, fitted; `model` is None where too few responses had an answer to learn
    from: then no response gets one."""

    contest: Contest
    chosen: str
    model: Any
    calibration: Calibration
    threshold: float | None

    @property
    def outside(self) -> Outside:
        return self.calibration.outside

    def score(self, rows: Rows, kit: Kit) -> list[Score]:
        scores = np.full(len(rows), np.nan)
        if self.model is not None:
            own = next(one for one in self.contest.make(rows, kit) if one.label == self.chosen)
            answered = _finite(own.inputs)
            if answered.any():
                scores[answered] = margin_of(self.model, own.inputs[answered])[0]
        suspects = None
        if self.contest.suspicions is not None and self.threshold is not None:
            suspects = [marked(one, self.threshold) for one in self.contest.suspicions(rows, kit)]
        found = self.calibration.verdicts(scores, rows.generators, suspects)
        if self.contest.replies is None:
            return found
        told = self.contest.replies(rows, kit)
        return [replace(one, **asdict(own)) for one, own in zip(found, told, strict=True)]


def _finite(inputs: np.ndarray) -> np.ndarray:
    """Which rows have numbers only, (rows,)."""
    whole: np.ndarray = np.isfinite(inputs).reshape(len(inputs), -1).all(axis=1)
    return whole
