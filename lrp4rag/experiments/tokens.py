"""Token models under a protocol: each token is judged by a committee that did not see its source.

How a response's score is made of its tokens', the sigmoid that makes it a probability, and all thresholds
are chosen on inner folds of the training rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.operating import DEFAULT_POINT, operating_points
from lrp4rag.classifiers.token_model import Tokens, fit_tokens, token_probabilities
from lrp4rag.errors import InputError
from lrp4rag.experiments.protocol import Protocol, Split, splits
from lrp4rag.experiments.rows import Rows
from lrp4rag.experiments.search import Outcome
from lrp4rag.features.blocks import Block, parts_of
from lrp4rag.features.record import Record
from lrp4rag.parts import STATES

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
    records = rows.records(states=STATES in parts_of(blocks)) if blocks else map(Record, rows.relevances)
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


def located(tokens: Tokens, protocol: Protocol, folds: list[Split] | None = None) -> Located:
    """The first repeat of a protocol, or some folds of it; what no fold judges stays NaN and unmarked."""
    count, rows = len(tokens.flags), len(tokens.labels)
    alone, log_odds = np.full(count, np.nan), np.full(count, np.nan)
    marked, sentences = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    verdicts, flagged = np.full((1, rows), np.nan), np.zeros((1, rows), dtype=bool)
    chosen = []
    for split in folds_of(tokens, protocol) if folds is None else folds:
        fitted, own = fit_tokens(tokens, split.train, protocol.seed), tokens.within(split.test)
        reading = fitted.reading
        blocks = {name: table[own] for name, table in tokens.blocks.items()}
        judged = fitted.committee.judge(blocks, tokens.owner[own])
        alone[own], log_odds[own] = judged.alone, judged.among
        found = token_probabilities(judged.among)
        marked[own] = found >= reading.token_threshold
        sentences[own] = reading.in_marked_sentences(found, tokens.sentence[own])
        verdicts[0, split.test] = reading.probabilities(alone, tokens.owner, split.test)
        point = operating_points(tokens.labels[split.train], fitted.probabilities)[DEFAULT_POINT]
        flagged[0, split.test] = verdicts[0, split.test] >= point.threshold
        chosen.append(f"{reading.top} tokens, from {point.threshold:.2f}")
    return Located(alone, log_odds, marked, sentences, Outcome(verdicts, flagged, tuple(chosen)))
