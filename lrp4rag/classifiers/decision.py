"""`DecisionRule`: how the log odds of single tokens become a response's probability and marks in its text.

All of it is chosen on log odds of tokens by models that did not learn from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.metrics import confusion_matrix_at_thresholds, f1_score, roc_auc_score

from lrp4rag.classifiers.calibration import Sigmoid, balanced_weights
from lrp4rag.types import Bounded, Positive, Probability

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
Names = NDArray[np.str_]

TOPS = (5, 10, 20, 40)
"""Candidate numbers of tokens for a response's score: a hallucinated clause has about ten."""
SENTENCE_TOPS = (1, 3, 6, 12)
SHIFT_DEVIATION = 0.5
"""Standard deviation of the prior of a generator's shift: odds half as large again are nothing unusual."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """* `top`: a response's score is the mean of its `top` highest token log odds; its probability is the
      sigmoid of `slope` times that plus `offset` (Platt), plus the generator's shift.
    * `shifts`: log odds by generator, since some hallucinate more often than others; 0 for any other.
    * Tokens are marked from the probability `token_threshold` on.
    * Sentences are marked where the mean probability of their `sentence_top` highest tokens is at least
      `sentence_threshold`.
    """

    # In a card, every number is checked.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )

    top: Positive
    slope: Bounded
    offset: Bounded
    token_threshold: Probability
    sentence_top: Positive
    sentence_threshold: Probability
    shifts: dict[str, Bounded] = field(default_factory=dict)

    def shift(self, generator: str | None) -> float:
        """What a generator adds to the log odds; 0 where it is unknown."""
        return self.shifts.get(generator or "", 0.0)

    def probability(self, log_odds: Scores, generator: str | None = None) -> float:
        """Of a response, from its tokens' log odds (t,)."""
        score = self.slope * top_mean(log_odds, self.top) + self.offset
        return float(expit(score + self.shift(generator)))

    def probabilities(self, log_odds: Scores, owner: Numbers, generators: Names) -> Scores:
        """Of R responses by `generators` (R,; "" for unknown); `owner` (N,) is each token's response."""
        shifts = np.array([self.shift(name) for name in generators])
        score = top_means(log_odds, owner, np.arange(len(generators)), self.top)
        found: Scores = expit(self.slope * score + self.offset + shifts)
        return found


def top_mean(scores: Scores, count: int) -> float:
    """The mean of the highest `count` scores, of all where there are fewer; raises `ValueError` for none."""
    if not len(scores):
        raise ValueError("no tokens to pool")
    return float(np.sort(scores)[-count:].mean())


def top_means(scores: Scores, owner: Numbers, rows: Numbers, count: int) -> Scores:
    """`top_mean` for each of `rows`, of token scores (N,) whose responses are `owner` (N,), which rises."""
    first, last = np.searchsorted(owner, rows), np.searchsorted(owner, rows, side="right")
    return np.array([top_mean(scores[start:end], count) for start, end in zip(first, last, strict=True)])


def in_marked_sentences(probabilities: Scores, sentence: Numbers, top: int, threshold: float) -> Flags:
    """Whether each token's sentence is marked, (N,): see `DecisionRule`. `sentence` (N,) is -1 for none."""
    marked = np.zeros(len(sentence), dtype=bool)
    inside = sentence >= 0
    numbers, where = np.unique(sentence[inside], return_inverse=True)
    scores = top_means(probabilities[inside], where, np.arange(len(numbers)), top)
    marked[inside] = (scores >= threshold)[where]
    return marked


def choose_rule(
    alone: Scores,
    among: Scores,
    flags: Flags,
    owner: Numbers,
    labels: Flags,
    sentence: Numbers,
    generators: Names,
    sets: Names | None = None,
) -> DecisionRule:
    """The number of tokens with the best AUROC, and the thresholds with the best F1, of N tokens and R
    responses.

    Where responses are from several `sets` (R,), AUROC is the mean of theirs, and probabilities hold where
    half of each set's are hallucinated: where a response is from shall not tell its class.

    Responses are scored by the tokens' log odds `alone`, text is marked by those `among` their neighbours.
    `owner` (N,) is the number of a token's response, `labels` (R,) are theirs, `sentence` (N,) is the number
    of a token's sentence (-1 for none); both numbers rise. `generators` (R,) are as for `probabilities`.
    """
    rows = np.arange(len(labels))
    scores = {top: top_means(alone, owner, rows, top) for top in TOPS}
    weights = None
    parts = [np.ones(len(labels), dtype=bool)]
    if sets is not None and len(set(sets)) > 1:
        weights = balanced_weights(labels, sets)
        mixed = [sets == name for name in sorted(set(sets)) if len(set(labels[sets == name])) > 1]
        parts = mixed or parts
    top = max(
        TOPS, key=lambda top: np.mean([roc_auc_score(labels[part], scores[top][part]) for part in parts])
    )
    sigmoid = Sigmoid.fit(scores[top], labels, weights)
    probabilities = expit(among)
    inside = sentence >= 0
    numbers, where = np.unique(sentence[inside], return_inverse=True)
    annotated = np.bincount(where, flags[inside]) > 0
    order = np.arange(len(numbers))
    values = {count: top_means(probabilities[inside], where, order, count) for count in SENTENCE_TOPS}
    cuts = {count: best_threshold(values[count], annotated) for count in SENTENCE_TOPS}
    f1 = {
        count: f1_score(annotated, values[count] >= cuts[count], zero_division=0) for count in SENTENCE_TOPS
    }
    count = max(SENTENCE_TOPS, key=f1.__getitem__)
    return DecisionRule(
        top=top,
        slope=sigmoid.slope,
        offset=sigmoid.offset,
        token_threshold=best_threshold(probabilities, flags),
        sentence_top=count,
        sentence_threshold=cuts[count],
        shifts=generator_shifts(sigmoid.log_odds(scores[top]), labels, generators),
    )


def generator_shifts(log_odds: Scores, labels: Flags, generators: Names) -> dict[str, float]:
    """By generator, where there are several: the shift of its responses' log odds that is most likely under a
    normal prior, so that few responses shift little."""
    names = sorted({str(name) for name in generators} - {""})
    if len(set(generators)) < 2:
        return {}
    signs = np.where(labels, 1.0, -1.0)

    def loss(by: float, theirs: Flags) -> float:
        unlikely = np.logaddexp(0, -signs[theirs] * (log_odds[theirs] + by)).sum()
        return float(unlikely + by**2 / (2 * SHIFT_DEVIATION**2))

    return {name: float(minimize_scalar(loss, args=(generators == name,)).x) for name in names}


def best_threshold(scores: Scores, flags: Flags) -> float:
    """The score from which flagging an item maximises F1 over all of them; infinite where none is flagged."""
    if not flags.any():
        return np.inf
    _, alarms, misses, hits, thresholds = confusion_matrix_at_thresholds(flags, scores)
    return float(thresholds[np.argmax(2 * hits / (2 * hits + alarms + misses))])
