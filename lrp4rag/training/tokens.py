"""`Tokens`: the tokens of stored responses with their features, as arrays to learn from, and on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.alarms import Unit, Units, units
from lrp4rag.classifiers.contradiction import Statements
from lrp4rag.classifiers.decision import COMPARED, claim_columns, highest_of
from lrp4rag.classifiers.ensemble import Flags, Numbers, Scores
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.example import Label
from lrp4rag.features.blocks import Block, reads_comparer
from lrp4rag.features.parts import READING, RELEVANCE
from lrp4rag.features.plain import StateBlock
from lrp4rag.features.record import Record
from lrp4rag.features.units import sentence_numbers
from lrp4rag.reader.comparer import bundled_comparer
from lrp4rag.training.alarms import FaultRows, RowTable
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import lean
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes, remove_leftovers, write_atomically, written_atomically
from lrp4rag.util.hashes import file_hash, json_hash
from lrp4rag.util.progress import track

Table = NDArray[np.floating]
Records = Callable[[Mapping[str, Block]], Iterable[Record]]
"""Reads the rows' records with all that some blocks are computed from."""

FEWEST_SOURCES = 10
HASH = ".sha256"
"""The ending of a file with another's hash."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The N tokens of R responses, response by response.

    * `blocks`: their features by block, (N, columns) each. `flags` (N,): which lie in a labelled span.
    * `owner` (N,): the number of their response. `sentence` (N,): of their sentence, over all responses; -1
      for none. `labels`, `groups`, `generators` (R,): of the responses; "" where unknown. `sets` (R,): names
      of the sets of data that they are from; "" where there is one.
    * `stating`, `compared` (S,), (S, 4): of the sentences, whether they state something, and what is known of
      their values (`decision.COMPARED`).
    * `faults`: the rows of the responses' values and sentences, from which alarms are learned; empty where
      they were not read.
    """

    blocks: dict[str, Table]
    flags: Flags
    owner: Numbers
    sentence: Numbers
    labels: Flags
    groups: NDArray[np.str_]
    generators: NDArray[np.str_]
    sets: NDArray[np.str_]
    stating: Flags
    compared: NDArray[np.float64]
    faults: Mapping[Unit, FaultRows] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        flags: Iterable[Flags],
        labels: Flags,
        groups: NDArray[np.str_],
        blocks: Mapping[str, Block],
        marked: Iterable[Sequence[Label]] | None = None,
        units: Callable[[Record], Units] = units,
    ) -> Tokens:
        """Compute the features of records, and with the labels of their responses (`marked`) those of the
        `units` that alarms learn from. Raises `InputError` for a response without tokens, or without what the
        blocks are made of."""
        by_block: dict[str, list[Table]] = {name: [] for name in blocks}
        sentences, generators, count = [], [], 0
        lengths = list[int]()
        stating, comparisons = list[bool](), [np.zeros((0, len(COMPARED)))]
        tables = defaultdict[Unit, RowTable](RowTable)
        spans = [] if marked is None else list(marked)
        for record in track(records, len(labels), "reading features"):
            if not len(record):
                raise InputError("a response without tokens cannot be learned from")
            for name, block in blocks.items():
                table = block(record)
                # States came from as many bits.
                by_block[name].append(lean(table) if isinstance(block, StateBlock) else table)
            numbers = sentence_numbers(record)
            sentences.append(np.where(numbers >= 0, numbers + count, -1))
            statements = Statements.of(record)
            stating += [states != "nothing" for states in statements.stating]
            comparisons.append(statements.compared)
            if spans:
                for unit, rows in units(record).items():
                    stated = [row for row in rows if statements.stating[row.sentence] != "nothing"]
                    tables[unit].add(stated, len(lengths), count, spans[len(lengths)])
            count += len(statements.stating)
            lengths.append(len(record))
            generators.append(record.generator or "")
        return cls(
            {name: np.concatenate(tables) for name, tables in by_block.items()},
            np.concatenate(list(flags)),
            np.repeat(np.arange(len(lengths)), lengths),
            np.concatenate(sentences),
            labels,
            groups,
            np.array(generators, dtype=np.str_),
            np.zeros(len(lengths), dtype=np.str_),
            np.array(stating, dtype=bool),
            np.concatenate(comparisons),
            {unit: gathered.rows() for unit, gathered in tables.items()},
        )

    def claims_of(self, alone: Scores, among: Scores, inside: Numbers) -> tuple[Scores, Numbers, Numbers]:
        """Compute the columns (C, columns) of the sentences that state something, among those of the tokens
        `inside`, whose scores (n,) are given; with the sentences' numbers and those of their responses,
        (C,)."""
        sentence = self.sentence[inside]
        numbers_of = np.unique(sentence[sentence >= 0])
        place = np.where(sentence >= 0, np.searchsorted(numbers_of, sentence), -1)
        columns = claim_columns(alone, among, place, self.compared[numbers_of])
        numbers, first = np.unique(sentence, return_index=True)
        owners = self.owner[inside][first[numbers >= 0]]
        states = self.stating[numbers_of]
        return columns[states], numbers_of[states], owners[states]

    def highest(self, unit: Unit, scores: Scores, inside: Numbers, sentences: Numbers) -> Scores:
        """Return the highest of the `scores` of rows (their numbers are `inside`) in each of some sentences,
        whose numbers rise; minus infinity for none."""
        numbers = self.faults[unit].sentence[inside]
        place = np.minimum(np.searchsorted(sentences, numbers), max(len(sentences) - 1, 0))
        there = sentences[place] == numbers if len(sentences) else np.zeros(len(numbers), dtype=bool)
        return highest_of(scores[there], place[there], len(sentences))

    def within(self, rows: Numbers) -> Numbers:
        """Number the tokens of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))

    def take(self, rows: Numbers) -> Tokens:
        """Take the tokens of some of the responses, whose numbers rise."""
        inside = self.within(rows)
        return Tokens(
            {name: table[inside] for name, table in self.blocks.items()},
            self.flags[inside],
            np.searchsorted(rows, self.owner[inside]),
            self.sentence[inside],
            self.labels[rows],
            self.groups[rows],
            self.generators[rows],
            self.sets[rows],
            self.stating,
            self.compared,
            {unit: table.take(rows) for unit, table in self.faults.items()},
        )

    def select(self, names: Iterable[str]) -> Tokens:
        """Keep some of the blocks."""
        return replace(self, blocks={name: self.blocks[name] for name in names})

    def require_sources(self) -> None:
        """Raise `InputError` where too few sources have annotated tokens for folds within folds."""
        for flagged, what in ((self.flags, "annotated"), (~self.flags, "other")):
            require_sources(len(set(self.groups[self.owner[flagged]])), what)


def require_sources(count: int, what: str) -> None:
    """Raise `InputError` where so many sources have no folds within folds."""
    if count < FEWEST_SOURCES:
        raise InputError(f"{FEWEST_SOURCES} sources with {what} tokens are needed, and there are {count}")


def stored_records(rows: Rows, needs: Sequence[str] = ()) -> Iterator[Record]:
    """Read the rows' records: readings where they are needed or there is no relevance, else relevance."""
    return rows.readings() if READING in needs or not rows.has(RELEVANCE) else rows.records()


def tokens_of(
    rows: Rows,
    blocks: Mapping[str, Block],
    records: Records | None = None,
    units: Callable[[Record], Units] = units,
    needs: Sequence[str] | None = None,
) -> Tokens:
    """Compute the features of the rows' tokens, by default of their readings, and of their `units`; raises
    `InputError` where a row lacks what the blocks are made of, or has no tokens. `needs` are the parts of the
    store that are read, by default readings where there are blocks."""
    needs = ((READING,) if blocks else ()) if needs is None else needs
    for example, encoded in zip(rows.examples, rows.encodings, strict=True):
        if not encoded.response_ids:
            raise InputError(f"the response of '{example.id}' has no tokens")
    return Tokens.of(
        records(blocks) if records and blocks else stored_records(rows, needs),
        rows.token_flags,
        rows.labels,
        rows.groups,
        blocks,
        [example.labels or () for example in rows.examples],
        units,
    )


def tokens_on_disk(
    rows: Rows,
    folder: Path,
    blocks: Mapping[str, Block],
    records: Records | None = None,
    units: Callable[[Record], Units] = units,
) -> Tokens:
    """Read tokens whose blocks are in files of `folder`, as they are needed; missing ones are made first.

    Raises `InputError` where the store lacks what a block is made of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    paths = {
        name: folder / f"{name}-{json_hash(key_of_block(rows, block))[:16]}.npy"
        for name, block in blocks.items()
    }
    missing = {name: block for name, block in blocks.items() if not _whole(paths[name])}
    # Values and sentences are read again where all blocks are there.
    needs = (READING,) if blocks and records is None else None
    tokens = tokens_of(rows, missing, records, units, needs)
    for name, table in tokens.blocks.items():
        with written_atomically(paths[name]) as file:
            np.save(file, table, allow_pickle=False)
        write_atomically(paths[name].with_suffix(HASH), f"{file_hash(paths[name])}\n")
    tables = {name: np.load(path, mmap_mode="r", allow_pickle=False) for name, path in paths.items()}
    return replace(tokens, blocks=tables)


def key_of_block(rows: Rows, block: Block) -> list[Any]:
    """Return all that a block's features of the rows depend on."""
    comparer = [bundled_comparer().digest] if reads_comparer([block]) else []
    return [rows.digest, FEATURE_VERSION, asdict(block), *comparer]


def _whole(path: Path) -> bool:
    """Say whether a table is there as it was written; it is read once for that."""
    try:
        return read_bytes(path.with_suffix(HASH), 100).decode().strip() == file_hash(path)
    except (InputError, OSError, ValueError):
        return False
