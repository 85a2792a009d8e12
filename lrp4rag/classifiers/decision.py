"""`DecisionRule`: how the log odds of single tokens become the probability of a claim, and of a response.

A response is as suspect as its most suspect claim: what else it says, right or wrong, changes nothing. All of
it is chosen on log odds of tokens by models that did not learn from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import confusion_matrix_at_thresholds

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
SHIFT_DEVIATION = 0.5
"""Standard deviation of the prior of a generator's shift: odds half as large again are nothing unusual."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """* `weights`: the log odds of a claim are its `COLUMNS` times these, plus `offset`, plus the generator's
      shift: those of a response of which it is the most suspect claim.
    * `shifts`: log odds by generator, since some hallucinate more often than others; 0 for any other.
    * In a suspect claim, tokens are marked from the probability `token_threshold` on.
    * `values`: slope and offset that make a probability of the log odds of a value that a passage has
      otherwise. A claim is right where its words are supported and its values are those of the passages:
      averaged over all of its words, one wrong number would drown.
    """

    # In a card, every number is checked.
    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", allow_inf_nan=False, revalidate_instances="always"
    )

    weights: Weights
    offset: Bounded
    token_threshold: Probability
    shifts: dict[str, Bounded] = field(default_factory=dict)
    values: tuple[Bounded, Bounded] | None = None

    def shift(self, generator: str | None) -> float:
        """Return the shift of the log odds by a generator; 0 for an unknown one."""
        return self.shifts.get(generator or "", 0.0)

    def value(self, log_odds: Scores) -> Scores:
        """Return the probabilities (V,) of values from their log odds; 0 by a rule without values."""
        if self.values is None:
            return np.zeros(len(log_odds))
        slope, offset = self.values
        probabilities: Scores = expit(slope * log_odds + offset)
        return probabilities

    def claims(self, columns: Scores, generator: str | None = None, values: Scores | None = None) -> Scores:
        """Return the probabilities of S claims, (S,), from their `COLUMNS`, (S, columns), and the log odds of
        their most suspect values, `values` (S,; minus infinity for none)."""
        return self.claims_by(columns, np.full(len(columns), generator or ""), values)

    def claims_by(self, columns: Scores, generators: Names, values: Scores | None = None) -> Scores:
        """Return the probabilities of claims by several `generators`, (S,; "" for unknown)."""
        shifts = np.array([self.shift(name) for name in generators])
        unsupported: Scores = expit(columns @ np.array(self.weights) + self.offset + shifts)
        return unsupported if values is None else 1 - (1 - unsupported) * (1 - self.value(values))

    def responses(
        self, columns: Scores, owner: Numbers, generators: Names, values: Scores | None = None
    ) -> Scores:
        """Of R responses by `generators` (R,): that of the most suspect claim; 0 where there is none. `owner`
        (S,) is the number of each claim's response."""
        found = np.zeros(len(generators))
        np.maximum.at(found, owner, self.claims_by(columns, generators[owner], values))
        return found


def highest_of(scores: Scores, owner: Numbers, count: int) -> Scores:
    """Return the highest of each of so many responses' scores, (count,); minus infinity where there is
    none."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, owner, scores)
    return found


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


def choose_rule(
    columns: Scores,
    wrong: Flags,
    owner: Numbers,
    labels: Flags,
    token_threshold: float,
    generators: Names,
    sets: Names | None = None,
    values: Scores | None = None,
) -> DecisionRule:
    """Return the weights of a claim, and what makes a response's probability of its most suspect one.

    Of S claims: `columns` (S, columns), whether a part of them is annotated (`wrong`, (S,)) and the number of
    their response (`owner`, (S,)); of R responses: `labels` and `generators` (R,), as for `responses`.
    `values` (S,) are the log odds of the claims' most suspect values, minus infinity for none.

    First logistic regression of claims; then of responses, on the highest of their claims. Where responses
    are from several `sets` (R,), probabilities hold where half of each set's are hallucinated: where a
    response is from shall not tell its class. Generators' shifts are learned with the slope: without them, it
    would have to explain why one generator hallucinates more.
    """
    several = sets is not None and len(set(sets)) > 1
    of_claims = balanced_weights(wrong, sets[owner]) if several and sets is not None else None
    weights, _ = logistic_weights(columns, wrong, 1 / (PENALTY * len(wrong)), of_claims)
    highest = highest_of(columns @ weights, owner, len(labels))
    some = np.isfinite(highest)
    counts = balanced_weights(labels[some], sets[some]) if several and sets is not None else None
    slope, offset, shifts = _regression(highest[some, None], labels[some], generators[some], counts)
    # A response must not become less suspect by a suspect claim.
    scaled = tuple((max(float(slope[0]), 0.0) * weights).tolist())
    rule = DecisionRule(scaled, offset, token_threshold, shifts)
    if values is None or not np.isfinite(values).any():
        return rule
    by_claim = rule.claims_by(columns, generators[owner])
    weight = np.ones(len(labels)) if sets is None else balanced_weights(labels, sets)
    return replace(rule, values=_scale_of_values(by_claim, values, owner, labels, weight))


def _scale_of_values(
    unsupported: Scores, values: Scores, owner: Numbers, labels: Flags, weights: Scores
) -> tuple[float, float]:
    """Return the slope and offset with which responses are likeliest, beside what their claims have without
    values (S,)."""

    def loss(parameters: Scores) -> float:
        slope, offset = np.exp(parameters[0]), parameters[1]
        claims = 1 - (1 - unsupported) * (1 - expit(slope * values + offset))
        chances = np.clip(highest_of(claims, owner, len(labels)), 1e-6, 1 - 1e-6)
        return float(-np.average(np.log(np.where(labels, chances, 1 - chances)), weights=weights))

    some = np.isfinite(highest_of(unsupported, owner, len(labels)))
    weights = np.where(some, weights, 0.0)
    best = minimize(loss, np.array([0.0, -3.0]), method="Nelder-Mead")
    return float(np.exp(best.x[0])), float(best.x[1])


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


def best_threshold(scores: Scores, flags: Flags) -> float:
    """Return the score from which flagging an item maximises F1 over all of them; infinite where none is
    flagged."""
    if not flags.any():
        return np.inf
    _, alarms, misses, hits, thresholds = confusion_matrix_at_thresholds(flags, scores)
    return float(thresholds[np.argmax(2 * hits / (2 * hits + alarms + misses))])
