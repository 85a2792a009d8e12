"""`TokenModel`: a committee that judges tokens and the reading that makes a verdict of what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.committee import Committee, Count, J, Judged, Member, fit_members
from lrp4rag.classifiers.reading import Reading, choose_reading
from lrp4rag.classifiers.verdict import TokenMarks, Verdict, judge
from lrp4rag.errors import InputError
from lrp4rag.features.blocks import Block, parts_of, wanted_by
from lrp4rag.features.record import Record
from lrp4rag.features.replay import Replay, SignalReplay
from lrp4rag.features.table import TokenTable
from lrp4rag.features.units import sentence_numbers
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.signals import Wanted
from lrp4rag.progress import track
from lrp4rag.reader.reader import Reader

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
      for none. `labels`, `groups`, `generators` (R,): of the responses; "" where none is told.
    """

    blocks: dict[str, Table]
    flags: Flags
    owner: Numbers
    sentence: Numbers
    labels: Flags
    groups: NDArray[np.str_]
    generators: NDArray[np.str_]

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
        lengths, sentences, generators, count = [], [], [], 0
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
            generators.append(record.generator or "")
        return cls(
            {name: np.concatenate(tables) for name, tables in parts.items()},
            np.concatenate(list(flags)),
            np.repeat(np.arange(len(lengths)), lengths),
            np.concatenate(sentences),
            labels,
            groups,
            np.array(generators, dtype=np.str_),
        )

    def within(self, rows: Numbers) -> Numbers:
        """The numbers of the tokens of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))

    def select(self, names: Iterable[str]) -> Tokens:
        """The same with some of the blocks."""
        return replace(self, blocks={name: self.blocks[name] for name in names})

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

    def replay(self, reader: Reader, flow: Flow) -> Replay:
        """What reads records for it."""
        return SignalReplay(reader, flow, self.wanted)

    def tables(self, record: Record) -> dict[str, Table]:
        return {name: block(record) for name, block in self.blocks.items()}

    def judge_tokens(self, record: Record) -> Judged:
        """Of each response token being made up, (t,)."""
        return self.committee.judge(self.tables(record))

    def probabilities(self, records: Iterable[Record]) -> Scores:
        """That each response is hallucinated, (rows,)."""
        return np.array(
            [self.reading.probability(self.judge_tokens(one).alone, one.generator) for one in records]
        )

    def judge(self, record: Record, threshold: float) -> Verdict:
        """The verdict with its marks; what moved it is told by `reasons_of`."""
        tokens, reading = self.judge_tokens(record), self.reading
        verdict = judge(
            record.relevance,
            probability=reading.probability(tokens.alone, record.generator),
            threshold=threshold,
            marks=TokenMarks(
                token_probabilities(tokens.among).astype(np.float32),
                reading.token_threshold,
                reading.sentence_top,
                reading.sentence_threshold,
            ),
        )
        return replace(verdict, shift=reading.shift(record.generator))


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What is learned from votes: how they are counted and read. With what it makes of the votes of members
    that had not learned from them: `tokens` (of the rows' tokens), and `probabilities` (rows,) of the rows'
    responses."""

    count: Count
    reading: Reading
    tokens: Judged
    probabilities: Scores


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A committee, and what was learned from its votes."""

    committee: Committee
    counted: Counted


def fit_tokens(tokens: Tokens, rows: Numbers, seed: int = 0) -> Fit:
    """Learn from the tokens of some responses; folds are of sources, and every choice is made on them."""
    members, outside = {}, {}
    for name in track(tokens.blocks, len(tokens.blocks), "training token classifiers"):
        members[name], outside[name] = fit_block(Member.fit, tokens, name, rows, seed)
    counted = count_votes(tokens, rows, outside)
    return Fit(Committee(members, counted.count), counted)


def fit_block(
    learn: Callable[..., J], tokens: Tokens, name: str, rows: Numbers, seed: int = 0
) -> tuple[tuple[J, ...], Scores]:
    """One block's members, which learn as `Member.fit` does, and what they say of the tokens of `rows` that
    they did not learn from."""
    own = tokens.within(rows)
    place = np.searchsorted(rows, tokens.owner[own])
    folds = [
        (np.flatnonzero(np.isin(place, train)), np.flatnonzero(np.isin(place, held)))
        for train, held in grouped_folds(tokens.labels[rows], tokens.groups[rows], FOLDS, seed)
    ]
    return fit_members(learn, tokens.blocks[name][own], tokens.flags[own], folds, seed)


def count_votes(tokens: Tokens, rows: Numbers, outside: Mapping[str, Scores]) -> Counted:
    """Learn how to count and read the blocks' votes, which `fit_block` gave for the same rows."""
    own = tokens.within(rows)
    place = np.searchsorted(rows, tokens.owner[own])
    labels, flags, generators = tokens.labels[rows], tokens.flags[own], tokens.generators[rows]
    votes = np.stack(list(outside.values()), axis=1)
    count = Count.fit(votes, flags, place)
    judged = count(votes, place)
    reading = choose_reading(
        judged.alone, judged.among, flags, place, labels, tokens.sentence[own], generators
    )
    probabilities = reading.probabilities(judged.alone, place, generators)
    return Counted(count, reading, judged, probabilities)


def token_probabilities(log_odds: Scores) -> Scores:
    found: Scores = expit(log_odds)
    return found


def lean(states: Table) -> NDArray[np.float16]:
    """Half the memory; states came from as many bits."""
    largest = float(np.finfo(np.float16).max)
    return np.clip(states, -largest, largest).astype(np.float16)
