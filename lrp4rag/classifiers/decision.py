"""`DecisionRule`: how the log odds of single tokens become the probability of a claim, and of a response.

A response is as suspect as its most suspect claim: what else it says, right or wrong, changes nothing. All of
it is chosen on log odds of tokens by models that did not learn from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from scipy.special import expit

from lrp4rag.classifiers.calibration import balanced_weights, deviations, logistic_weights
from lrp4rag.util.types import Bounded, Probability

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]
Names = NDArray[np.str_]

TOPS = (1, 3, 10)
"""Numbers of a sentence's highest tokens: a wrong number is one, a hallucinated clause about ten."""
COMPARED = ("contradicted", "margin", "similarity", "unsupported")
"""Columns of a sentence's contradicted values (see `contradiction.compared`)."""
COLUMNS = (
    *(f"highest {top} by themselves" for top in TOPS),
    *(f"highest {top} among neighbours" for top in TOPS),
    *COMPARED,
)
"""Columns of a claim; the log odds of its tokens are those up to the sentence's end."""
PENALTY = 0.01
"""Of the regressions: this times half the square of the weights of standardised columns is added to the mean
loss."""
Weights = Annotated[tuple[Bounded, ...], Field(min_length=len(COLUMNS), max_length=len(COLUMNS))]
LOWEST = -8.0
"""Log odds of an alarm in a claim without a value, and of one that is less suspect than this."""
SHIFT_DEVIATION = 0.5
"""Standard deviation of the prior of a generator's shift: odds half as large again are nothing unusual."""


@dataclass(frozen=True, slots=True, eq=False)
class Claimed:
    """S claims: their `COLUMNS`, (S, columns), the highest log odds of each alarm in them (S,; minus infinity
    for none) by its name, and the log odds that trees make of both, (S,), where there are any."""

    columns: Scores
    alarms: Mapping[str, Scores] = field(default_factory=dict)
    by_trees: Scores | None = None

    @property
    def table(self) -> Scores:
        """All that is known of each claim, (S, columns and alarms)."""
        alarms = (np.maximum(scores, LOWEST) for scores in self.alarms.values())
        return np.column_stack([self.columns, *alarms])


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """* `weights`: the log odds that a claim is unsupported are its `COLUMNS` times these, those of alarms
      (`LOWEST` or more) times `alarm_weights`, those that trees make of both times `tree_weight`, `offset`,
      and the generator's shift, added.
    * `shifts`: log odds by generator, since some hallucinate more often than others; 0 for any other.
    * In a suspect claim, tokens are marked from the probability `token_threshold` on.
    """

    # In a card, every number is checked.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )

    weights: Weights
    offset: Bounded
    token_threshold: Probability
    shifts: dict[str, Bounded] = field(default_factory=dict)
    alarm_weights: dict[str, Bounded] = field(default_factory=dict)
    tree_weight: Bounded = 0.0

    def shift(self, generator: str | None) -> float:
        """Return what a generator adds to the log odds of a claim; 0 for an unknown one."""
        return self.shifts.get(generator or "", 0.0)

    def claims(self, claims: Claimed, generator: str | None = None) -> Scores:
        """Return the probabilities of S claims, (S,)."""
        return self.claims_by(claims, np.full(len(claims.columns), generator or ""))

    def claims_by(self, claims: Claimed, generators: Names) -> Scores:
        """Return the probabilities of claims by several `generators`, (S,; "" for unknown)."""
        weights = [*self.weights, *(self.alarm_weights[name] for name in claims.alarms)]
        total = claims.table @ np.array(weights) + self.offset
        if claims.by_trees is not None:
            total = total + self.tree_weight * claims.by_trees
        total = total + np.array([self.shift(name) for name in generators])
        probabilities: Scores = expit(total)
        return probabilities

    def responses(self, claims: Claimed, owner: Numbers, generators: Names) -> Scores:
        """Return, of R responses by `generators` (R,), that of the most suspect claim; 0 where there is none.
        `owner` (S,) is the number of each claim's response."""
        return np.maximum(highest_of(self.claims_by(claims, generators[owner]), owner, len(generators)), 0.0)


def highest_of(scores: Scores, owner: Numbers, count: int) -> Scores:
    """Return the highest of each of so many responses' scores, (count,); minus infinity where there is
    none."""
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, owner, scores)
    return highest


def claim_columns(alone: Scores, among: Scores, sentence: Numbers, compared: Scores) -> Scores:
    """Return the `COLUMNS` of S sentences, (S, columns): of tokens' log odds (N,), by themselves and among
    their neighbours, with the number of each token's sentence (N,; -1 for none), which rises, and what is
    known of the sentences' values, `compared` (S, 4). A sentence without a token has a row of zeros."""
    inside = np.flatnonzero(sentence >= 0)
    numbers, first = np.unique(sentence[inside], return_index=True)
    columns = np.zeros((len(compared), len(COLUMNS)))
    for number, tokens in zip(numbers, np.split(inside, first[1:]), strict=True) if len(inside) else ():
        columns[number, : 2 * len(TOPS)] = [
            top_mean(scores[tokens], top) for scores in (alone, among) for top in TOPS
        ]
        columns[number, 2 * len(TOPS) :] = compared[number]
    return columns


def top_mean(scores: Scores, count: int) -> float:
    """Return the mean of the highest `count` scores, of all where there are fewer; raises `ValueError` for
    none."""
    if not len(scores):
        raise ValueError("no tokens to pool")
    return float(np.sort(scores)[-count:].mean())


def claim_weights(wrong: Flags, owner: Numbers, sets: Names) -> Scores:
    """Return how much each of S claims counts where they are learned from, (S,): where responses are from
    several `sets` (R,), where one is from shall not tell its class."""
    return balanced_weights(wrong, sets[owner]) if len(set(sets)) > 1 else np.ones(len(wrong))


def choose_rule(
    claims: Claimed,
    wrong: Flags,
    owner: Numbers,
    labels: Flags,
    token_threshold: float,
    generators: Names,
    sets: Names | None = None,
) -> DecisionRule:
    """Return the weights of a claim, and what makes a response's probability of its most suspect one.

    Of S claims: `claims`, whether a part of them is annotated (`wrong`, (S,)) and the number of their
    response (`owner`, (S,)); of R responses: `labels` and `generators` (R,), as for `responses`, and the
    `sets` that they are from. `claims.by_trees` are by trees that did not learn from the claim.

    First logistic regression of claims, in whose place the trees are where these tell more; then of
    responses, on the highest of their claims. Where responses are from several sets, probabilities hold where
    half of each set's are hallucinated. Generators' shifts are learned with the slope: without them, it would
    have to explain why one generator hallucinates more.
    """
    sets = np.full(len(labels), "") if sets is None else sets
    table, counts = claims.table, claim_weights(wrong, owner, sets)
    weights, bias = logistic_weights(table, wrong, 1 / (PENALTY * len(wrong)), counts)
    log_odds, grown = table @ weights, claims.by_trees
    if grown is not None and _loss(grown, wrong, counts) >= _loss(log_odds + bias, wrong, counts):
        grown = None
    log_odds = log_odds if grown is None else grown
    highest = highest_of(log_odds, owner, len(labels))
    stated = np.isfinite(highest)
    halves = balanced_weights(labels[stated], sets[stated]) if len(set(sets)) > 1 else None
    slope, offset, shifts = _regression(highest[stated, None], labels[stated], generators[stated], halves)
    # A response must not become less suspect by a suspect claim.
    scale = max(float(slope[0]), 0.0)
    scaled = ((0.0 if grown is not None else scale) * weights).tolist()
    count = claims.columns.shape[1]
    of_alarms = dict(zip(claims.alarms, scaled[count:], strict=True))
    tree_weight = 0.0 if grown is None else scale
    return DecisionRule(tuple(scaled[:count]), offset, token_threshold, shifts, of_alarms, tree_weight)


def _loss(log_odds: Scores, flags: Flags, counts: Scores) -> float:
    return float(np.average(np.logaddexp(0, np.where(flags, -log_odds, log_odds)), weights=counts))


def _regression(
    columns: Scores, labels: Flags, generators: Names, counts: Scores | None
) -> tuple[Scores, float, dict[str, float]]:
    """Fit weights of columns (R, k), the offset, and generators' shifts under their prior: the penalty on a
    column's weight is a normal prior too, and how wide it is depends on the column's scale."""
    # Shifts can differ only where several generators wrote.
    names = sorted({str(name) for name in generators} - {""}) if len(set(generators)) > 1 else []
    beside = np.array(generators)[:, None] == np.array(names, dtype=np.str_)
    penalty = PENALTY * len(labels)
    narrow = np.full(len(names), 1 / (SHIFT_DEVIATION * np.sqrt(penalty)))
    table, scale = np.concatenate([columns, beside], axis=1), np.concatenate([deviations(columns), narrow])
    weights_of_all, offset = logistic_weights(table, labels, 1 / penalty, counts, scale)
    weights, shifts = np.split(weights_of_all, [columns.shape[1]])
    return weights, offset, dict(zip(names, shifts.tolist(), strict=True))


def best_threshold(scores: Scores, flags: Flags) -> float:
    """Return the score from which flagging an item maximises F1 over all of them; infinite where none is
    flagged."""
    from sklearn.metrics import confusion_matrix_at_thresholds  # in training only

    if not flags.any():
        return np.inf
    _, alarms, misses, hits, thresholds = confusion_matrix_at_thresholds(flags, scores)
    return float(thresholds[np.argmax(2 * hits / (2 * hits + alarms + misses))])
