"""From scores to verdicts: the last step of every baseline, the same as our own detector's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.calibration import sigmoid_of
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.classifiers.reading import generator_shifts
from lrp4rag.experiments.systems.baseline import Outside, Score, Suspect

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Platt's sigmoid, `slope` times the score plus `offset`, with a shift of log odds by generator, and the
    `threshold` where precision equals recall. A score that is NaN is no answer: it gets the `rate` of
    hallucinated responses. `outside` is what it was learned from."""

    slope: float
    offset: float
    shifts: Mapping[str, float]
    threshold: float
    rate: float
    outside: Outside

    @classmethod
    def of(
        cls,
        scores: Scores,
        labels: NDArray[np.bool_],
        generators: NDArray[np.str_],
        rows: NDArray[np.intp] | None = None,
    ) -> Calibration:
        """From scores (M,) of labelled responses by models that did not learn from them; `rows` (M,) are
        their numbers among the rows learned from, all of which they are by default. Where no score is
        known, a response is flagged if hallucination is the more frequent label."""
        rows = np.arange(len(labels)) if rows is None else rows
        known, rate = np.isfinite(scores), float(labels.mean())
        if not known.any():
            return cls(0.0, 0.0, {}, 0.5, rate, Outside(rows, np.full(len(rows), rate)))
        sigmoid = sigmoid_of(scores[known], labels[known])
        slope, offset = -float(sigmoid.a_), -float(sigmoid.b_)
        shifts = generator_shifts(slope * scores[known] + offset, labels[known], generators[known])
        made = cls(slope, offset, shifts, 0.5, rate, Outside(rows, np.zeros(0)))
        probabilities = made.probabilities(scores, generators)
        point = operating_points(labels, probabilities)[DEFAULT_POINT]
        return cls(slope, offset, shifts, point.threshold, rate, Outside(rows, probabilities))

    def probabilities(self, scores: Scores, generators: NDArray[np.str_]) -> Scores:
        shifts = np.array([self.shifts.get(str(name), 0.0) for name in generators])
        found: Scores = expit(self.slope * scores + self.offset + shifts)
        return np.where(np.isfinite(scores), found, self.rate)

    def verdicts(
        self,
        scores: Scores,
        generators: NDArray[np.str_],
        suspects: Sequence[tuple[Suspect, ...] | None] | None = None,
    ) -> list[Score]:
        probabilities = self.probabilities(scores, generators)
        return [
            Score(
                probability=float(probability),
                flagged=bool(probability >= self.threshold),
                suspects=None if suspects is None else suspects[k],
                answered=bool(np.isfinite(scores[k])),
            )
            for k, probability in enumerate(probabilities)
        ]
