"""Token models under a protocol: each token is judged by a committee that did not see its source.

How a response's score is made of its tokens', the sigmoid that makes it a probability, and all thresholds
are chosen on inner folds of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.committee import Learn, Member, vote
from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.classifiers.token_model import Tokens, count_votes, fit_block, token_probabilities
from lrp4rag.errors import InputError
from lrp4rag.features.blocks import Block, parts_of
from lrp4rag.features.parts import STATES
from lrp4rag.progress import track
from lrp4rag.training.folds import Protocol, Split, splits
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """What a protocol made of N tokens, and of R responses.

    `alone`, `log_odds` (among neighbours) and `marked` (N,) are of tokens, `sentences` (N,) says whether a
    token's sentence is marked, and `outcome` is of responses.
    """

    alone: Scores
    log_odds: Scores
    marked: Flags
    sentences: Flags
    outcome: Outcome

    @property
    def probabilities(self) -> Scores:
        """Of tokens, (N,)."""
        return token_probabilities(self.log_odds)


def tokens_of(rows: Rows, blocks: Mapping[str, Block]) -> Tokens:
    """Raises `InputError` where a row lacks what the blocks are made of, or has no tokens."""
    for example, relevance in zip(rows.examples, rows.relevances, strict=True):
        if not len(relevance.response):
            raise InputError(f"the response of '{example.id}' has no tokens")
    # Without blocks, what relevance tells of the tokens is enough.
    records = rows.records(states=STATES in parts_of(blocks)) if blocks else rows.bare_records()
    return Tokens.of(records, rows.token_flags, rows.labels, rows.groups, blocks)


def folds_of(
    tokens: Tokens, protocol: Protocol, learn: Flags | None = None, judged: Flags | None = None
) -> list[Split]:
    """Of the first repeat: which responses are learned from and which are judged (default: all and all).

    Raises `InputError` where too few sources have annotated tokens for folds within folds.
    """
    tokens.require_sources()
    everything = np.ones(len(tokens.labels), dtype=bool)
    made, _ = splits(
        protocol,
        tokens.labels,
        tokens.groups,
        everything if learn is None else learn,
        everything if judged is None else judged,
    )
    return [split for split in made if not split.repeat]


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """One block's in one fold: on the tokens learned from, by members that did not learn from them
    (`outside`), and on the tokens to be judged (`judged`)."""

    outside: Scores
    judged: Scores


@dataclass(frozen=True, slots=True, eq=False)
class FoldResult:
    """What one fold's models made of R test rows and their N tokens (see `Located`)."""

    rows: NDArray[np.intp]
    alone: Scores
    log_odds: Scores
    marked: Flags
    sentences: Flags
    probabilities: Scores
    flagged: Flags
    chosen: str


def votes_of(tokens: Tokens, block: str, split: Split, seed: int, learn: Learn | None = None) -> Votes:
    """By the tokens' features in one block; the expensive part. Members are networks unless `learn` makes
    others."""
    members, outside = fit_block(learn or Member.fit, tokens, block, split.train, seed)
    return Votes(outside, vote(members, tokens.blocks[block][tokens.within(split.test)]))


def read_fold(tokens: Tokens, split: Split, votes: Mapping[str, Votes]) -> FoldResult:
    """Learn from the votes of some blocks on the training tokens, and read those on the others."""
    counted = count_votes(tokens, split.train, {name: one.outside for name, one in votes.items()})
    reading, own = counted.reading, tokens.within(split.test)
    judged = counted.count(np.stack([one.judged for one in votes.values()], axis=1), tokens.owner[own])
    place = np.searchsorted(split.test, tokens.owner[own])
    found = token_probabilities(judged.among)
    probabilities = reading.probabilities(judged.alone, place, tokens.generators[split.test])
    point = operating_points(tokens.labels[split.train], counted.probabilities)[DEFAULT_POINT]
    return FoldResult(
        rows=split.test,
        alone=judged.alone,
        log_odds=judged.among,
        marked=found >= reading.token_threshold,
        sentences=reading.in_marked_sentences(found, tokens.sentence[own]),
        probabilities=probabilities,
        flagged=probabilities >= point.threshold,
        chosen=f"{reading.top} tokens, from {point.threshold:.2f}",
    )


def located_of(results: Iterable[FoldResult], tokens: Tokens) -> Located:
    """The folds' results together; what none judged is NaN and unmarked."""
    count, rows = len(tokens.flags), len(tokens.labels)
    alone, log_odds = np.full(count, np.nan), np.full(count, np.nan)
    marked, sentences = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    probabilities, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    chosen = []
    for result in results:
        own = tokens.within(result.rows)
        alone[own], log_odds[own] = result.alone, result.log_odds
        marked[own], sentences[own] = result.marked, result.sentences
        probabilities[0, result.rows], flagged[0, result.rows] = result.probabilities, result.flagged
        chosen.append(result.chosen)
    return Located(alone, log_odds, marked, sentences, Outcome(probabilities, flagged, tuple(chosen)))


def located(tokens: Tokens, protocol: Protocol) -> Located:
    """The first repeat of a protocol, in this process and from scratch (see `Workshop` for neither)."""

    def fold(split: Split) -> FoldResult:
        votes = {name: votes_of(tokens, name, split, protocol.seed) for name in tokens.blocks}
        return read_fold(tokens, split, votes)

    folds = folds_of(tokens, protocol)
    return located_of(track(map(fold, folds), len(folds), "cross-validating"), tokens)
