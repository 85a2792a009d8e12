"""Token classifiers under a protocol: each token is judged by a model that did not see its source.

A response's score pools those of its tokens. How many tokens are pooled, the sigmoid that makes it a
probability, and the probability from which a token is marked are chosen on inner folds of the training
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from lrp4rag.classifiers.calibration import fit, grouped_folds, probability_of, sigmoid_of, worth
from lrp4rag.classifiers.pooling import TOPS, pooled
from lrp4rag.errors import InputError
from lrp4rag.experiments.protocol import Protocol, Split, splits
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.search import THRESHOLD, Outcome
from lrp4rag.features.table import TokenTable
from lrp4rag.progress import track

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Groups = NDArray[np.str_]

INNER_FOLDS = 3
FEWEST_SOURCES = 10
SMALLEST = 1e-6
"""Probabilities are kept off 0 and 1, whose log odds are infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The N tokens of R responses, response by response.

    * `table` (N, columns): their features. `flags` (N,): which lie in a labelled span.
    * `owner` (N,): the number of their response. `labels`, `groups` (R,): of the responses.
    """

    table: NDArray[np.float32]
    flags: Flags
    owner: NDArray[np.intp]
    labels: Flags
    groups: Groups

    @classmethod
    def of(cls, rows: Rows, columns: TokenTable) -> Tokens:
        """Raises `InputError` where a row has no signals, or no tokens."""
        tables = []
        for example, record in zip(
            rows.examples, track(rows.records(), len(rows), "reading features"), strict=True
        ):
            if not len(record):
                raise InputError(f"the response of '{example.id}' has no tokens")
            tables.append(columns(record))
        lengths = [len(table) for table in tables]
        owner = np.repeat(np.arange(len(rows)), lengths)
        return cls(np.concatenate(tables), np.concatenate(rows.token_flags), owner, rows.labels, rows.groups)

    def folds(self, protocol: Protocol) -> list[Split]:
        """Of the first repeat; every response may be learned from and is judged.

        Raises `InputError` where too few sources have annotated tokens for folds within folds.
        """
        for flagged, what in ((self.flags, "annotated"), (~self.flags, "other")):
            count = len(set(self.groups[self.owner[flagged]]))
            if count < FEWEST_SOURCES:
                raise InputError(
                    f"{FEWEST_SOURCES} sources with {what} tokens are needed, and there are {count}"
                )
        everything = np.ones(len(self.labels), dtype=bool)
        made, _ = splits(protocol, self.labels, self.groups, everything, everything)
        return [split for split in made if not split.repeat]

    def within(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The numbers of the tokens of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """What a protocol made of the tokens, and of their responses.

    `probabilities` (N,) and `marked` (N,) are of tokens, `outcome` of responses; `tops` has the number of
    tokens pooled in each fold.
    """

    probabilities: Scores
    marked: Flags
    outcome: Outcome
    tops: tuple[int, ...]


def located(tokens: Tokens, estimator: Any, protocol: Protocol, *, tops: Sequence[int] = TOPS) -> Located:
    """The first repeat of a protocol; every choice is made inside its folds."""
    count, folds = len(tokens.labels), tokens.folds(protocol)
    found = np.full(len(tokens.flags), np.nan)
    marked = np.zeros(len(tokens.flags), dtype=bool)
    verdicts, chosen = np.full((1, count), np.nan), []
    for split in track(folds, len(folds), "judging tokens"):
        test = tokens.within(split.test)
        found[test] = _judged(tokens, estimator, split.train, split.test)
        inner = _judged_within(tokens, estimator, split, protocol.seed)
        labels, log_odds = tokens.labels[split.train], logit(inner)
        scores = {top: pooled(log_odds, tokens.owner, split.train, top) for top in tops}
        top = max(tops, key=lambda top: worth(protocol.scoring, labels, scores[top], 0.0, calibrated=True))
        sigmoid = sigmoid_of(scores[top], labels)
        verdicts[0, split.test] = sigmoid.predict(pooled(logit(found), tokens.owner, split.test, top))
        own = tokens.within(split.train)
        marked[test] = found[test] >= best_threshold(inner[own], tokens.flags[own])
        chosen.append(top)
    outcome = Outcome(verdicts, verdicts >= THRESHOLD, tuple(f"{top} tokens" for top in chosen))
    return Located(found, marked, outcome, tuple(chosen))


def best_threshold(scores: Scores, flags: Flags) -> float:
    """The score from which calling a token made up maximises F1 over all tokens; infinite where none is."""
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(flags[order])
    if not len(hits) or not hits[-1]:
        return np.inf
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    # Only where the next one is lower can a threshold cut.
    f1[:-1][np.diff(scores[order]) == 0] = 0
    return float(scores[order[int(f1.argmax())]])


def _judged(tokens: Tokens, estimator: Any, train: NDArray[np.intp], test: NDArray[np.intp]) -> Scores:
    """Probabilities of the tokens of `test`, by a model fitted on those of `train`."""
    own, others = tokens.within(train), tokens.within(test)
    model = fit(estimator, tokens.table[own], tokens.flags[own], tokens.groups[tokens.owner[own]])
    probabilities: Scores = probability_of(model, tokens.table[others])
    return np.clip(probabilities, SMALLEST, 1 - SMALLEST)


def _judged_within(tokens: Tokens, estimator: Any, split: Split, seed: int) -> Scores:
    """(N,): of the training rows' tokens, each by a model fitted without its inner fold; NaN elsewhere."""
    rows, found = split.train, np.full(len(tokens.flags), np.nan)
    for train, test in grouped_folds(tokens.labels[rows], tokens.groups[rows], INNER_FOLDS, seed):
        found[tokens.within(rows[test])] = _judged(tokens, estimator, rows[train], rows[test])
    return found
