"""From scores to decisions: a threshold that marks parts of responses, Platt's sigmoid for whole
responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from lrp4rag.classifiers.calibration import Sigmoid
from lrp4rag.classifiers.decision import SHIFT_DEVIATION, Names, best_threshold
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.example import Example
from lrp4rag.reader.encoding import tokens_in

T = TypeVar("T", bound=np.generic)
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
EDGE = 1e-6  # of a probability, so that its log odds are finite


@dataclass(frozen=True, slots=True, eq=False)
class PartScores:
    """Of P parts of a response: `spans` (P, 2) in characters, `scores` (P,), higher for hallucinated ones."""

    spans: NDArray[np.intp]
    scores: Floats

    def annotated(self, example: Example) -> Flags:
        """Which parts share a character with an annotated span, (P,)."""
        spans = [(label.start, label.end) for label in example.labels or ()]
        return tokens_in([(int(start), int(end)) for start, end in self.spans], spans)

    def over_tokens(self, offsets: Sequence[tuple[int, int]], threshold: float) -> tuple[Floats, Flags]:
        """Scores and marks (t,) of the tokens with these offsets: the highest score of the parts that a token
        shares a character with, which are marked from the threshold on. A token in no part has the lowest
        score of any."""
        scores = np.full(len(offsets), self.scores.min() if len(self.scores) else 0.0)
        marked = np.zeros(len(offsets), dtype=bool)
        for (start, end), score in zip(self.spans.tolist(), self.scores.tolist(), strict=True):
            inside = tokens_in(offsets, [(start, end)])
            scores[inside] = np.maximum(scores[inside], score)
            marked |= inside & (score >= threshold)
        return scores, marked


NO_PARTS = PartScores(np.zeros((0, 2), np.intp), np.zeros(0))
"""Of a response that could not be scored."""


def split(values: NDArray[T], like: Sequence[Sized]) -> list[NDArray[T]]:
    """Cut concatenated values into parts as long as those of `like`."""
    return np.split(values, np.cumsum([len(each) for each in like])[:-1])


def threshold_of(parts: Sequence[PartScores], examples: Sequence[Example]) -> float:
    """The score from which marking a part has the best F1 over all parts of labelled responses."""
    flags = [scores.annotated(example) for scores, example in zip(parts, examples, strict=True)]
    return best_threshold(np.concatenate([each.scores for each in parts]), np.concatenate(flags))


def log_odds(probability: float | None) -> float:
    """Finite; NaN where there is no probability."""
    if probability is None:
        return np.nan
    bounded = min(max(probability, EDGE), 1 - EDGE)
    return float(np.log(bounded / (1 - bounded)))


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Probabilities (M,) of training rows by models that did not learn from them; `rows` (M,) are their
    indices among the training rows."""

    rows: NDArray[np.intp]
    probabilities: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Platt's sigmoid, `slope` times the score plus `offset`, with a shift of log odds by generator, and the
    `threshold` where precision equals recall. A score that is NaN is no answer: its probability is the `rate`
    of hallucinated responses. `out_of_fold` are the probabilities that it was fitted on."""

    slope: float
    offset: float
    shifts: Mapping[str, float]
    threshold: float
    rate: float
    out_of_fold: OutOfFold

    @classmethod
    def of(
        cls,
        scores: Floats,
        labels: Flags,
        generators: NDArray[np.str_],
        rows: NDArray[np.intp] | None = None,
    ) -> Calibration:
        """Fit out-of-fold scores (M,) of labelled responses; `rows` (M,) are their indices among the training
        rows (default: all of them). Without any score, a response is flagged if hallucinated is the more
        frequent label."""
        rows = np.arange(len(labels)) if rows is None else rows
        answered, rate = np.isfinite(scores), float(labels.mean())
        if not answered.any():
            return cls(0.0, 0.0, {}, 0.5, rate, OutOfFold(rows, np.full(len(rows), rate)))
        sigmoid = Sigmoid.fit(scores[answered], labels[answered])
        slope, offset = sigmoid.slope, sigmoid.offset
        shifts = generator_shifts(slope * scores[answered] + offset, labels[answered], generators[answered])
        fitted = cls(slope, offset, shifts, 0.5, rate, OutOfFold(rows, np.zeros(0)))
        probabilities = fitted.probabilities(scores, generators)
        point = operating_points(labels, probabilities)[DEFAULT_POINT]
        return cls(slope, offset, shifts, point.threshold, rate, OutOfFold(rows, probabilities))

    def probabilities(self, scores: Floats, generators: NDArray[np.str_]) -> Floats:
        shifts = np.array([self.shifts.get(str(name), 0.0) for name in generators])
        probabilities: Floats = expit(self.slope * scores + self.offset + shifts)
        return np.where(np.isfinite(scores), probabilities, self.rate)


def generator_shifts(log_odds: Floats, labels: Flags, generators: Names) -> dict[str, float]:
    """By generator, where there are several: the shift of its responses' log odds that is most likely under a
    normal prior, so that few responses shift little."""
    signs = np.where(labels, 1.0, -1.0)

    def loss(by: float, theirs: Flags) -> float:
        unlikely = np.logaddexp(0, -signs[theirs] * (log_odds[theirs] + by)).sum()
        return float(unlikely + by**2 / (2 * SHIFT_DEVIATION**2))

    names = sorted({str(name) for name in generators} - {""}) if len(set(generators)) > 1 else []
    return {name: float(minimize_scalar(loss, args=(generators == name,)).x) for name in names}
