"""`Groups`: the responses of a run, those to one prompt together, as workers on any machine can read them.

Of DATA in JSONL or Parquet files they are places: workers read the rows themselves, and neither the process
that starts the run nor Ray's memory holds them. Anything else (a RAGTruth folder, a JSON array, a choice of
generators) is read here first, and handed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lrp4rag.data import examples_of
from lrp4rag.example import Example
from lrp4rag.training.extract import groups_of
from lrp4rag.training.extractor import Group
from lrp4rag.util.rows import Place, row_at

Numbered = tuple[int, int, Example]
"""The number of a row, of the response in it, and the response."""


class Groups(Protocol):
    """`examples` responses in `rows` rows. Groups stand in the order of their first rows."""

    @property
    def rows(self) -> int: ...

    @property
    def examples(self) -> int: ...

    def __len__(self) -> int: ...

    def read(self, number: int) -> tuple[Group, list[Numbered]]:
        """A group, and the numbers of its examples. Raises `InputError` for a row that is no longer good."""
        ...


@dataclass(frozen=True, slots=True)
class HeldGroups:
    """What was read already: each group, and the numbers of its examples."""

    held: tuple[tuple[Group, tuple[int, ...]], ...]
    rows: int

    @property
    def examples(self) -> int:
        return self.rows

    @classmethod
    def of(cls, examples: Sequence[Example]) -> HeldGroups:
        """Of examples with the ids that they have among these."""
        number = {example.id: k for k, example in enumerate(examples)}
        held = (
            (group, tuple(number[example.id] for example in group.examples))
            for group in groups_of(examples, examples)
        )
        return cls(tuple(held), len(examples))

    def __len__(self) -> int:
        return len(self.held)

    def read(self, number: int) -> tuple[Group, list[Numbered]]:
        group, rows = self.held[number]
        return group, [(row, 0, example) for row, example in zip(rows, group.examples, strict=True)]


def examples_at(place: Place, row: Any, template: str | None, several: bool) -> Iterator[Example]:
    """The examples of a row. One without an id has its line's number, after the file's name where there are
    `several` files."""
    number = f"{PurePath(place.path).name}:{place.line}" if several else None
    for example, _ in examples_of(row, place.path, place.line, template=template, number=number):
        yield example


@dataclass(frozen=True, slots=True, eq=False)
class PlacedGroups:
    """Places of rows (r): `file` numbers `files`; `order` has the rows' numbers by groups, and `starts` (g +
    1) where each group begins there. `after` (g) is a row of the prompt that follows in an order that never
    changes (-1: there is one prompt). Arrays, because Ray's workers share them and copy none."""

    files: tuple[str, ...]
    template: str | None
    examples: int
    file: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    line: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    after: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return len(self.file)

    def __len__(self) -> int:
        return len(self.after)

    def place(self, row: int) -> Place:
        return Place(
            self.files[self.file[row]], int(self.start[row]), int(self.size[row]), int(self.line[row])
        )

    def read(self, number: int) -> tuple[Group, list[Numbered]]:
        rows = self.order[self.starts[number] : self.starts[number + 1]].tolist()
        found = [(row, k, example) for row in rows for k, example in enumerate(self._examples(row))]
        after = int(self.after[number])
        other = None if after < 0 else next(self._examples(after))
        return Group(tuple(example for _, _, example in found), other), found

    def _examples(self, row: int) -> Iterator[Example]:
        place = self.place(row)
        return examples_at(place, row_at(place), self.template, len(self.files) > 1)


def by_prompt(high: NDArray[Any], low: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`order`, `starts` and `after` of rows whose prompts have these hashes (r), in two halves of 64 bits."""
    ranked = np.lexsort((low, high))  # rows of one prompt keep their order
    changed = (np.diff(high[ranked]) != 0) | (np.diff(low[ranked]) != 0)
    edges = np.concatenate([[0], np.flatnonzero(changed) + 1, [len(ranked)]])
    firsts = ranked[edges[:-1]]
    following = np.roll(firsts, -1) if len(firsts) > 1 else np.full(len(firsts), -1)
    turns = np.argsort(firsts, kind="stable")
    sizes = np.diff(edges)[turns]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Where each row of the new order stands in the ranked one: its group's edge, and its place in the group.
    within = np.arange(len(ranked)) - np.repeat(starts[:-1], sizes)
    return ranked[np.repeat(edges[:-1][turns], sizes) + within], starts, following[turns]
