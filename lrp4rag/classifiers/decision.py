"""`DecisionRule`: how the log odds of single tokens become a response's probability and marks in its text.

All of it is chosen on log odds of tokens by models that did not learn from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.metrics import confusion_matrix_at_thresholds, f1_score

from lrp4rag.classifiers.calibration import balanced_weights, deviations, logistic_weights
from lrp4rag.types import Bounded, Positive, Probability

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
Names = NDArray[np.str_]

TOPS = (1, 3, 10, 30)
"""Numbers of a response's highest tokens: a wrong number is one, a hallucinated clause about ten."""
PENALTY = 0.01
"""Of the regression on them, which say nearly the same: this times half the square of the weights of
standardised columns is added to the mean loss."""
Weights = Annotated[tuple[Bounded, ...], Field(min_length=len(TOPS) + 1, max_length=len(TOPS) + 1)]
"""Of the columns of `summary`."""
SENTENCE_TOPS = (1, 3, 6, 12)
SHIFT_DEVIATION = 0.5
"""Standard deviation of the prior of a generator's shift: odds half as large again are nothing unusual."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """* `weights`: a response's log odds are its `summary` times these, plus `offset`, plus the generator's
      shift.
    * `shifts`: log odds by generator, since some hallucinate more often than others; 0 for any other.
    * Tokens are marked from the probability `token_threshold` on.
    * Sentences are marked where the mean probability of their `sentence_top` highest tokens is at least
      `sentence_threshold`.
    """

    # In a card, every number is checked.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )

    weights: Weights
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
        score = float(summary(log_odds) @ np.array(self.weights)) + self.offset
        return float(expit(score + self.shift(generator)))

    def probabilities(self, log_odds: Scores, owner: Numbers, generators: Names) -> Scores:
        """Of R responses by `generators` (R,; "" for unknown); `owner` (N,) is each token's response."""
        shifts = np.array([self.shift(name) for name in generators])
        columns = summaries(log_odds, owner, len(generators))
        found: Scores = expit(columns @ np.array(self.weights) + self.offset + shifts)
        return found


def summary(log_odds: Scores) -> Scores:
    """Of a response's token log odds (t,): the means of its highest `TOPS`, and log t. The length is there
    since the highest of many tokens are higher even where nothing is wrong."""
    return np.array([*(top_mean(log_odds, top) for top in TOPS), np.log(len(log_odds))])


def summaries(log_odds: Scores, owner: Numbers, count: int) -> Scores:
    """`summary` of each of so many responses, (count, columns); `owner` (N,) is each token's response."""
    return np.array([summary(one) for one in np.split(log_odds, np.searchsorted(owner, np.arange(1, count)))])


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
    """The weights by logistic regression of responses, and the thresholds with the best F1, of N tokens and R
    responses.

    Where responses are from several `sets` (R,), probabilities hold where half of each set's are
    hallucinated: where a response is from shall not tell its class. Generators' shifts are learned with the
    weights: without them, these would have to explain why one generator hallucinates more.

    Responses are scored by the tokens' log odds `alone`, text is marked by those `among` their neighbours.
    `owner` (N,) is the number of a token's response, `labels` (R,) are theirs, `sentence` (N,) is the number
    of a token's sentence (-1 for none); both numbers rise. `generators` (R,) are as for `probabilities`.
    """
    counts = None if sets is None or len(set(sets)) < 2 else balanced_weights(labels, sets)
    columns = summaries(alone, owner, len(labels))
    weights, offset, shifts = _regression(columns, labels, generators, counts)
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
        weights=tuple(weights.tolist()),
        offset=offset,
        token_threshold=best_threshold(probabilities, flags),
        sentence_top=count,
        sentence_threshold=cuts[count],
        shifts=shifts,
    )


def _regression(
    columns: Scores, labels: Flags, generators: Names, counts: Scores | None
) -> tuple[Scores, float, dict[str, float]]:
    """Weights of columns (R, k), the offset, and generators' shifts under their prior: the penalty on a
    column's weight is a normal prior too, and how wide it is depends on the column's scale."""
    names = _named(generators)
    beside = np.array(generators)[:, None] == np.array(names, dtype=np.str_)
    penalty = PENALTY * len(labels)
    narrow = np.full(len(names), 1 / (SHIFT_DEVIATION * np.sqrt(penalty)))
    every, scale = np.concatenate([columns, beside], axis=1), np.concatenate([deviations(columns), narrow])
    found, offset = logistic_weights(every, labels, 1 / penalty, counts, scale)
    weights, shifts = np.split(found, [columns.shape[1]])
    return weights, offset, dict(zip(names, shifts.tolist(), strict=True))


def _named(generators: Names) -> list[str]:
    """Those that can differ: none where all responses are by one."""
    return sorted({str(name) for name in generators} - {""}) if len(set(generators)) > 1 else []


def generator_shifts(log_odds: Scores, labels: Flags, generators: Names) -> dict[str, float]:
    """By generator, where there are several: the shift of its responses' log odds that is most likely under a
    normal prior, so that few responses shift little."""
    signs = np.where(labels, 1.0, -1.0)

    def loss(by: float, theirs: Flags) -> float:
        unlikely = np.logaddexp(0, -signs[theirs] * (log_odds[theirs] + by)).sum()
        return float(unlikely + by**2 / (2 * SHIFT_DEVIATION**2))

    return {name: float(minimize_scalar(loss, args=(generators == name,)).x) for name in _named(generators)}


def best_threshold(scores: Scores, flags: Flags) -> float:
    """The score from which flagging an item maximises F1 over all of them; infinite where none is flagged."""
    if not flags.any():
        return np.inf
    _, alarms, misses, hits, thresholds = confusion_matrix_at_thresholds(flags, scores)
    return float(thresholds[np.argmax(2 * hits / (2 * hits + alarms + misses))])
