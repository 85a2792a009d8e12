"""`Reading`: how the log odds of single tokens become a response's probability and marks in its text.

All of it is chosen on log odds of tokens by models that did not learn from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit

from lrp4rag.classifiers.calibration import sigmoid_of, worth
from lrp4rag.classifiers.pooling import SENTENCE_TOPS, TOPS, pooled, top_mean

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
Names = NDArray[np.str_]

SHIFT_DEVIATION = 0.5
"""Of the prior of a generator's shift: odds that differ by half as much again are nothing unusual."""


@dataclass(frozen=True, slots=True)
class Reading:
    """* `top`: a response's score is the mean log odds of so many tokens, the highest; its probability is
      the sigmoid of `slope` times that plus `offset` (Platt), plus the generator's shift.
    * `shifts`: log odds by generator: some make things up more often than others. Of another generator, or
      one that is not told, the shift is 0.
    * Tokens are marked from the probability `token_threshold` on.
    * Sentences are marked where the mean probability of their `sentence_top` highest tokens is at least
      `sentence_threshold`.
    """

    top: int
    slope: float
    offset: float
    token_threshold: float
    sentence_top: int
    sentence_threshold: float
    shifts: Mapping[str, float] = field(default_factory=dict)

    def shift(self, generator: str | None) -> float:
        """Of a generator in log odds; 0 where it is not told, or not known."""
        return self.shifts.get(generator or "", 0.0)

    def probability(self, log_odds: Scores, generator: str | None = None) -> float:
        """Of a response, from its tokens' (t,)."""
        score = self.slope * top_mean(log_odds, self.top) + self.offset
        return float(expit(score + self.shift(generator)))

    def probabilities(self, log_odds: Scores, owner: Numbers, generators: Names) -> Scores:
        """Of R responses, whose `generators` (R,) are names ("" for none); `owner` (N,) tells whose a token
        is."""
        shifts = np.array([self.shift(name) for name in generators])
        score = pooled(log_odds, owner, np.arange(len(generators)), self.top)
        found: Scores = expit(self.slope * score + self.offset + shifts)
        return found

    def in_marked_sentences(self, probabilities: Scores, sentence: Numbers) -> Flags:
        """Whether each token's sentence is marked, (N,), from tokens' probabilities and sentences (N,)."""
        marked = np.zeros(len(sentence), dtype=bool)
        inside = sentence >= 0
        numbers, where = np.unique(sentence[inside], return_inverse=True)
        scores = pooled(probabilities[inside], where, np.arange(len(numbers)), self.sentence_top)
        marked[inside] = (scores >= self.sentence_threshold)[where]
        return marked


def choose_reading(
    alone: Scores,
    among: Scores,
    flags: Flags,
    owner: Numbers,
    labels: Flags,
    sentence: Numbers,
    generators: Names,
    *,
    tops: Sequence[int] = TOPS,
    sentence_tops: Sequence[int] = SENTENCE_TOPS,
) -> Reading:
    """The number of tokens with the best AUROC, and the thresholds with the best F1, of N tokens and R
    responses.

    Responses are scored by the tokens' log odds `alone`, text is marked by those `among` their neighbours.
    `owner` (N,) is the number of a token's response, `labels` (R,) are theirs, `sentence` (N,) is the number
    of a token's sentence (-1 for none); both numbers rise. `generators` (R,) are as for `probabilities`.
    """
    rows = np.arange(len(labels))
    scores = {top: pooled(alone, owner, rows, top) for top in tops}
    top = max(tops, key=lambda top: worth("auroc", labels, scores[top], 0.0, calibrated=True))
    sigmoid = sigmoid_of(scores[top], labels)
    probabilities = expit(among)
    inside = sentence >= 0
    numbers, where = np.unique(sentence[inside], return_inverse=True)
    annotated = np.bincount(where, flags[inside]) > 0
    order = np.arange(len(numbers))
    values = {count: pooled(probabilities[inside], where, order, count) for count in sentence_tops}
    cuts = {count: best_threshold(values[count], annotated) for count in sentence_tops}
    count = max(sentence_tops, key=lambda count: _f1(values[count] >= cuts[count], annotated))
    slope, offset = -float(sigmoid.a_), -float(sigmoid.b_)
    return Reading(
        top=top,
        slope=slope,
        offset=offset,
        token_threshold=best_threshold(probabilities, flags),
        sentence_top=count,
        sentence_threshold=cuts[count],
        shifts=generator_shifts(slope * scores[top] + offset, labels, generators),
    )


def generator_shifts(log_odds: Scores, labels: Flags, generators: Names) -> dict[str, float]:
    """By generator, where there are several: what is most likely to be added to responses' log odds under a
    normal prior, so that few responses shift little."""
    names = sorted({str(name) for name in generators} - {""})
    if len(set(generators)) < 2:
        return {}
    signs = np.where(labels, 1.0, -1.0)

    def shift(own: Flags) -> float:
        def loss(by: float) -> float:
            unlikely = np.logaddexp(0, -signs[own] * (log_odds[own] + by)).sum()
            return float(unlikely + by**2 / (2 * SHIFT_DEVIATION**2))

        return float(minimize_scalar(loss).x)

    return {name: shift(generators == name) for name in names}


def best_threshold(scores: Scores, flags: Flags) -> float:
    """The score from which calling an item made up maximises F1 over all of them; infinite where none is."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(flags[order])
    if not len(hits) or not hits[-1]:
        return np.inf
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    # Only where the next one is lower can a threshold cut.
    f1[:-1][np.diff(scores[order]) == 0] = 0
    return float(scores[order[int(f1.argmax())]])


def _f1(marked: Flags, flags: Flags) -> float:
    return float(2 * (marked & flags).sum() / max(marked.sum() + flags.sum(), 1))
