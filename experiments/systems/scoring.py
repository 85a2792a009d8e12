"""From scores to verdicts: a threshold that marks parts of responses, Platt's sigmoid for responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from lrp4rag.classifiers.calibration import Sigmoid
from lrp4rag.classifiers.decision import SHIFT_DEVIATION, Flags, Names, Scores, best_threshold
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.example import Example
from lrp4rag.reader.encoding import tokens_in

T = TypeVar("T", bound=np.generic)
Floats = NDArray[np.float64]
EDGE = 1e-6  # of a probability, so that its log odds are finite


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """Characters `start` to `end` of a response, their score (higher: more likely hallucinated), and whether
    it is high enough for them to be marked."""

    start: int
    end: int
    score: float
    marked: bool


@dataclass(frozen=True, slots=True)
class Score:
    """Of one response: the `probability` that it is hallucinated, whether it is `flagged`, and its scored
    parts, tokens or sentences (None for a baseline that scores none).

    `answered` is False where the baseline had nothing to go by (a judge that gave no usable reply): the
    probability is then the rate of hallucinated responses. `asked` counts the questions that were put to a
    model, `unanswered` those without a usable reply: they are left out of the score. `notes` are the model's
    reasons.
    """

    probability: float
    flagged: bool
    suspects: tuple[ScoredSpan, ...] | None = None
    answered: bool = True
    asked: int = 0
    unanswered: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """Probabilities of training rows by models that did not learn from them: `rows` (M,) are their numbers
    among the training rows, `probabilities` (M,)."""

    rows: NDArray[np.intp]
    probabilities: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PartScores:
    """Of P parts of a response: `spans` (P, 2) in characters, `scores` (P,), higher for hallucinated ones."""

    spans: NDArray[np.intp]
    scores: Floats

    def marked(self, threshold: float) -> tuple[ScoredSpan, ...]:
        """Parts are marked from the threshold on."""
        return tuple(
            ScoredSpan(int(start), int(end), float(score), bool(score >= threshold))
            for (start, end), score in zip(self.spans, self.scores, strict=True)
        )

    def annotated(self, example: Example) -> NDArray[np.bool_]:
        """Which parts share a character with an annotated span, (P,)."""
        spans = [(label.start, label.end) for label in example.labels or ()]
        return tokens_in([(int(start), int(end)) for start, end in self.spans], spans)


def split(values: NDArray[T], like: Sequence[Sized]) -> list[NDArray[T]]:
    """What was concatenated, in parts as long as those of `like`."""
    return np.split(values, np.cumsum([len(one) for one in like])[:-1])


NO_PARTS = PartScores(np.zeros((0, 2), np.intp), np.zeros(0))
"""Of a response that could not be scored."""


def threshold_of(parts: Sequence[PartScores], examples: Sequence[Example]) -> float:
    """The score from which marking a part has the best F1 over all parts of labelled responses."""
    flags = [one.annotated(example) for one, example in zip(parts, examples, strict=True)]
    return best_threshold(np.concatenate([one.scores for one in parts]), np.concatenate(flags))


def log_odds(probability: float | None) -> float:
    """Finite; NaN where there is no probability."""
    if probability is None:
        return np.nan
    bounded = min(max(probability, EDGE), 1 - EDGE)
    return float(np.log(bounded / (1 - bounded)))


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
        labels: NDArray[np.bool_],
        generators: NDArray[np.str_],
        rows: NDArray[np.intp] | None = None,
    ) -> Calibration:
        """From out-of-fold scores (M,) of labelled responses; `rows` (M,) are their numbers among the
        training rows (default: all of them). Without any score, a response is flagged if hallucinated is the
        more frequent label."""
        rows = np.arange(len(labels)) if rows is None else rows
        known, rate = np.isfinite(scores), float(labels.mean())
        if not known.any():
            return cls(0.0, 0.0, {}, 0.5, rate, OutOfFold(rows, np.full(len(rows), rate)))
        sigmoid = Sigmoid.fit(scores[known], labels[known])
        slope, offset = sigmoid.slope, sigmoid.offset
        shifts = generator_shifts(slope * scores[known] + offset, labels[known], generators[known])
        fitted = cls(slope, offset, shifts, 0.5, rate, OutOfFold(rows, np.zeros(0)))
        probabilities = fitted.probabilities(scores, generators)
        point = operating_points(labels, probabilities)[DEFAULT_POINT]
        return cls(slope, offset, shifts, point.threshold, rate, OutOfFold(rows, probabilities))

    def probabilities(self, scores: Floats, generators: NDArray[np.str_]) -> Floats:
        shifts = np.array([self.shifts.get(str(name), 0.0) for name in generators])
        found: Floats = expit(self.slope * scores + self.offset + shifts)
        return np.where(np.isfinite(scores), found, self.rate)

    def verdicts(
        self,
        scores: Floats,
        generators: NDArray[np.str_],
        spans: Sequence[tuple[ScoredSpan, ...]] | None = None,
    ) -> list[Score]:
        probabilities = self.probabilities(scores, generators)
        return [
            Score(
                probability=float(probability),
                flagged=bool(probability >= self.threshold),
                suspects=None if spans is None else spans[k],
                answered=bool(np.isfinite(scores[k])),
            )
            for k, probability in enumerate(probabilities)
        ]


def generator_shifts(log_odds: Scores, labels: Flags, generators: Names) -> dict[str, float]:
    """By generator, where there are several: the shift of its responses' log odds that is most likely under a
    normal prior, so that few responses shift little."""
    signs = np.where(labels, 1.0, -1.0)

    def loss(by: float, theirs: Flags) -> float:
        unlikely = np.logaddexp(0, -signs[theirs] * (log_odds[theirs] + by)).sum()
        return float(unlikely + by**2 / (2 * SHIFT_DEVIATION**2))

    names = sorted({str(name) for name in generators} - {""}) if len(set(generators)) > 1 else []
    return {name: float(minimize_scalar(loss, args=(generators == name,)).x) for name in names}
