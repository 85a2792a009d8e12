"""`TokenModel`: a committee that judges tokens and the reading that makes a verdict of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.committee import Committee, Judged, fit_committee
from lrp4rag.classifiers.reading import Reading, choose_reading
from lrp4rag.classifiers.verdict import TokenMarks, Verdict, judge
from lrp4rag.errors import InputError
from lrp4rag.features.blocks import Block, parts_of, wanted_by
from lrp4rag.features.record import Record
from lrp4rag.features.table import TokenTable
from lrp4rag.features.units import sentence_numbers
from lrp4rag.lrp.signals import Wanted
from lrp4rag.progress import track

Table = NDArray[np.floating]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
Numbers = NDArray[np.intp]

FOLDS = 5
FEWEST_SOURCES = 10


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The N tokens of R responses, response by response.

    * `blocks`: their features by block, (N, columns) each. `flags` (N,): which lie in a labelled span.
    * `owner` (N,): the number of their response. `sentence` (N,): of their sentence, over all responses; -1
      for none. `labels`, `groups` (R,): of the responses.
    """

    blocks: dict[str, Table]
    flags: Flags
    owner: Numbers
    sentence: Numbers
    labels: Flags
    groups: NDArray[np.str_]

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        flags: Iterable[Flags],
        labels: Flags,
        groups: NDArray[np.str_],
        blocks: Mapping[str, Block],
    ) -> Tokens:
        """Raises `InputError` for a response without tokens, or without what the blocks are made of."""
        parts: dict[str, list[Table]] = {name: [] for name in blocks}
        lengths, sentences, count = [], [], 0
        for record in track(records, len(labels), "reading features"):
            if not len(record):
                raise InputError("a response without tokens cannot be learned from")
            for name, block in blocks.items():
                made = block(record)
                parts[name].append(made if isinstance(block, TokenTable) else lean(made))
            own = sentence_numbers(record)
            sentences.append(np.where(own >= 0, own + count, -1))
            count += int(own.max()) + 1
            lengths.append(len(record))
        return cls(
            {name: np.concatenate(tables) for name, tables in parts.items()},
            np.concatenate(list(flags)),
            np.repeat(np.arange(len(lengths)), lengths),
            np.concatenate(sentences),
            labels,
            groups,
        )

    def within(self, rows: Numbers) -> Numbers:
        """The numbers of the tokens of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))

    def select(self, names: Iterable[str]) -> Tokens:
        """The same with some of the blocks."""
        blocks = {name: self.blocks[name] for name in names}
        return Tokens(blocks, self.flags, self.owner, self.sentence, self.labels, self.groups)

    def require_sources(self) -> None:
        """Raise `InputError` where too few sources have annotated tokens for folds within folds."""
        for flagged, what in ((self.flags, "annotated"), (~self.flags, "other")):
            count = len(set(self.groups[self.owner[flagged]]))
            if count < FEWEST_SOURCES:
                raise InputError(
                    f"{FEWEST_SOURCES} sources with {what} tokens are needed, and there are {count}"
                )


@dataclass(frozen=True, slots=True, eq=False)
class TokenModel:
    """Fitted; `blocks` say what its committee reads."""

    blocks: dict[str, Block]
    committee: Committee
    reading: Reading

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads."""
        return parts_of(self.blocks)

    @property
    def wanted(self) -> Wanted:
        """The signals that must be computed for it."""
        return wanted_by(self.blocks)

    def tables(self, record: Record) -> dict[str, Table]:
        return {name: block(record) for name, block in self.blocks.items()}

    def judge_tokens(self, record: Record) -> Judged:
        """Of each response token being made up, (t,)."""
        return self.committee.judge(self.tables(record))

    def probabilities(self, records: Iterable[Record]) -> Scores:
        """That each response is hallucinated, (rows,)."""
        return np.array([self.reading.probability(self.judge_tokens(record).alone) for record in records])

    def judge(self, record: Record, threshold: float) -> Verdict:
        """The verdict with its marks; what moved it is told by `reasons_of`."""
        tokens, reading = self.judge_tokens(record), self.reading
        return judge(
            record.relevance,
            probability=reading.probability(tokens.alone),
            threshold=threshold,
            marks=TokenMarks(
                token_probabilities(tokens.among).astype(np.float32),
                reading.token_threshold,
                reading.sentence_top,
                reading.sentence_threshold,
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A committee and its reading, and what members said of tokens that they had not learned from:
    `tokens` (of the rows' tokens), and `probabilities` (rows,) of the rows' responses."""

    committee: Committee
    reading: Reading
    tokens: Judged
    probabilities: Scores


def fit_tokens(tokens: Tokens, rows: Numbers, seed: int = 0) -> Fit:
    """Learn from the tokens of some responses; folds are of sources, and every choice is made on them."""
    own = tokens.within(rows)
    place = np.searchsorted(rows, tokens.owner[own])
    labels, flags = tokens.labels[rows], tokens.flags[own]
    folds = [
        (np.flatnonzero(np.isin(place, train)), np.flatnonzero(np.isin(place, held)))
        for train, held in grouped_folds(labels, tokens.groups[rows], FOLDS, seed)
    ]
    blocks = {name: table[own] for name, table in tokens.blocks.items()}
    committee, outside = fit_committee(blocks, flags, folds, place, seed)
    reading = choose_reading(outside.alone, outside.among, flags, place, labels, tokens.sentence[own])
    probabilities = reading.probabilities(outside.alone, place, np.arange(len(rows)))
    return Fit(committee, reading, outside, probabilities)


def token_probabilities(log_odds: Scores) -> Scores:
    found: Scores = expit(log_odds)
    return found


def lean(states: Table) -> NDArray[np.float16]:
    """Half the memory; states came from as many bits."""
    largest = float(np.finfo(np.float16).max)
    return np.clip(states, -largest, largest).astype(np.float16)
