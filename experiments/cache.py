"""Cells: the pieces of a cross-validation, each cached in a file as soon as it is computed.

A run that was killed resumes after its last cell, and what did not change is not computed again.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from experiments.records import UNREADABLE, from_json, to_json
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder, remove_leftovers, write_atomically
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import read_record, require_seal, sealed

VERSION = 1
"""Raised whenever a cell of the same key would come out differently."""
LARGEST = 1 << 30
"""Bytes of a cell: some hold a number for each token of a store, many times."""

Task = Callable[[], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Something to compute: `key` says everything that its value depends on, `kind` is the value's type.

    `prepare` gathers what is needed and returns what computes the value, perhaps in another process.
    """

    key: dict[str, Any]
    kind: Any
    prepare: Callable[[], Task]

    @property
    def name(self) -> str:
        return json_hash([VERSION, FEATURE_VERSION, self.key], sort_keys=True)[:32]


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """A folder with a JSON file for each cell: its key, its value, and the seconds that it took.

    A cell whose file cannot be read as that is computed again.
    """

    folder: Path
    jobs: int = 1
    _values: dict[str, Any] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _earlier: dict[str, float] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, jobs: int = 1) -> Cache:
        """Raises `InputError` where it is no folder, or nothing can be written to it."""
        check_folder(folder).mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        return cls(folder, jobs)

    def path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.name}.json"

    def holds(self, cell: Cell) -> bool:
        return self.read(cell) is not None

    def read(self, cell: Cell) -> Any:
        """The value of a cached cell, or None."""
        if cell.name not in self._values and (record := self._read(cell)) is not None:
            try:
                self._values[cell.name] = from_json(cell.kind, record["value"])
            except UNREADABLE:
                return None
            if cell.name not in self._made:
                self._earlier[cell.name] = record["seconds"]
        return self._values.get(cell.name)

    def forget(self, cell: Cell) -> None:
        self._values.pop(cell.name, None)
        make_way(self.path(cell)).unlink(missing_ok=True)

    def seconds(self, cells: Sequence[Cell]) -> float:
        """How long the cells took, each on one core, whenever that was."""
        records = (self._read(cell) for cell in {cell.name: cell for cell in cells}.values())
        return float(sum(record["seconds"] for record in records if record is not None))

    def write(self, cell: Cell, value: Any, seconds: float) -> None:
        """Cache a value, as `to_json` gives it."""
        self._made.add(cell.name)
        record = {"key": cell.key, "seconds": round(seconds, 3), "value": value}
        write_atomically(make_way(self.path(cell)), json.dumps(sealed(record), allow_nan=False) + "\n")

    def run(self, cell: Cell) -> Any:
        """Compute a cell in this process, with all threads, and cache its value.

        Its seconds include those, on one core, of cells that it reads and that an earlier run computed.
        """
        before = sum(self._earlier.values())
        value, seconds = _timed(cell.prepare())
        self.write(cell, value, seconds + sum(self._earlier.values()) - before)
        return self.read(cell)

    def all(self, cells: Sequence[Cell], label: str) -> list[Any]:
        """The values of the cells, in their order; those that are missing are computed first."""
        missing = {cell.name: cell for cell in cells if not self.holds(cell)}
        if missing:
            for _ in track(self._compute(list(missing.values())), len(missing), label):
                pass
        return [self.read(cell) for cell in cells]

    def _compute(self, cells: Sequence[Cell]) -> Iterator[None]:
        """One by one as they are done. What a cell needs is gathered shortly before its turn."""
        tasks = (delayed(_timed_alone)(k, cell.prepare()) for k, cell in enumerate(cells))
        # Without memory maps: a killed run would leave their files behind.
        pool = Parallel(n_jobs=self.jobs, return_as="generator_unordered", max_nbytes=None)
        for k, value, seconds in pool(tasks):
            self.write(cells[k], value, seconds)
            yield

    def _read(self, cell: Cell) -> dict[str, Any] | None:
        try:
            record = read_record(self.path(cell), "a cell", LARGEST)
            require_seal(record, self.path(cell), "the cell")
            if record["key"] != json.loads(json.dumps(cell.key)):  # of another cell
                return None
            seconds = from_json(float, record["seconds"])
        except (FileNotFoundError, InputError, *UNREADABLE):
            return None
        return record if "value" in record and seconds is not None else None


def make_way(path: Path) -> Path:
    """The path, where a file can be written: what is there and is none, such as a pipe, gets another name."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.rename(path.with_name(f"{path.name}.{secrets.token_hex(4)}.aside"))
    return path


def _timed(task: Task) -> tuple[Any, float]:
    """What a task computes, as JSON, and the seconds it took."""
    started = time.perf_counter()
    return to_json(task()), time.perf_counter() - started


def _timed_alone(number: int, task: Task) -> tuple[int, Any, float]:
    with threadpool_limits(1):
        return number, *_timed(task)
