"""Many examples judged by workers: in this process, in several, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from lrp4rag.example import Example
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.training.extract import groups_of
from lrp4rag.training.extractor import Group
from lrp4rag.util.errors import EXAMPLE_ERRORS
from lrp4rag.util.processes import Create
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import finite_or_none

Row = dict[str, Any]
Rows = list[Row]
Show = Callable[[ExplainedVerdict], Row]
"""Turns a verdict into a row of JSON values, in the process that judged."""
MapGroups = Callable[[Sequence[Group], Create[Group, Rows]], Generator[tuple[int, Rows]]]
"""Yields the number of each group with its rows from a worker, as groups are done."""


class Load(Protocol):
    """Opens a detector with its reader in the process of a worker."""

    def __call__(self, *, worker: int) -> Detector: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """The error by which an example could not be judged, and the exit code for it."""

    error: str
    code: int


def judge_many(
    examples: Sequence[Example],
    load: Load,
    show: Show,
    map_groups: MapGroups,
    options: Mapping[str, Any],
    *,
    together: bool = False,
) -> Iterator[tuple[Example, Row | Failure]]:
    """Yield each example with the row that `show` makes of its verdict, in their order, as soon as the
    examples before it are done; `options` are those of `Detector.judge_each`. A worker judges all examples of
    a prompt, and all examples at all where they are judged `together`, as each then depends on the others."""
    if not examples:  # needs no detector
        return iter(())
    groups = [Group(tuple(examples))] if together else groups_of(examples, examples)
    rows = _rows_in_order(examples, groups, partial(_JudgingWorker, load, show, options), map_groups)
    return track(rows, len(examples), "judging responses")


def _rows_in_order(
    examples: Sequence[Example],
    groups: Sequence[Group],
    create: Create[Group, Rows],
    map_groups: MapGroups,
) -> Iterator[tuple[Example, Row | Failure]]:
    position = {example.id: number for number, example in enumerate(examples)}
    ready: dict[int, Row | Failure] = {}
    following = 0
    with closing(map_groups(groups, create)) as results:
        for number, rows in results:
            for example, row in zip(groups[number].examples, rows, strict=True):
                error = row.pop("error")
                ready[position[example.id]] = row["row"] if error is None else Failure(error, row["code"])
            while following in ready:
                yield examples[following], ready.pop(following)
                following += 1


class _JudgingWorker:
    """A detector and its reader, open until `close`."""

    def __init__(self, load: Load, show: Show, options: Mapping[str, Any], *, worker: int = 0) -> None:
        self._show, self._options = show, options
        self._detector = load(worker=worker)
        self._detector.__enter__()

    def run(self, group: Group) -> Rows:
        """Return for each response the row of its verdict, or an error and the exit code for it."""
        rows = []
        for verdict in self._detector.judge_each(group.examples, **self._options):
            if not isinstance(verdict, Exception):
                rows.append({"error": None, "row": finite_or_none(self._show(verdict))})
            elif isinstance(verdict, EXAMPLE_ERRORS):
                code = getattr(verdict, "exit_code", 1)
                rows.append({"error": str(verdict) or type(verdict).__name__, "code": code})
            else:
                raise verdict
        return rows

    def close(self) -> None:
        self._detector.__exit__()
