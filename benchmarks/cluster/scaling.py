"""`python -m benchmarks.cluster.scaling`: rows a second of one and of two workers with the default reader,
and what Ray on one machine costs beside the processes of `--workers`."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cluster.memory import watched
from benchmarks.command import Report, benchmark, count, table
from lrp4rag.cli.options import ReaderChoice
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.features.parts import READING, RELEVANCE
from lrp4rag.guard.cluster.extraction import Extracting, ExtractionWorker
from lrp4rag.guard.cluster.groups import HeldGroups, Numbered
from lrp4rag.guard.cluster.session import joined
from lrp4rag.guard.cluster.work import Workers, spread
from lrp4rag.lrp.composites import composite_named
from lrp4rag.training.extract import extract
from lrp4rag.training.extractor import Group
from lrp4rag.training.sets import set_path
from lrp4rag.training.store import Configuration, Store

CHOICE = ReaderChoice("smollm2-135m", "cpu", "float32")


class Timed:
    """A worker that says when it ended each row, and in which process."""

    def __init__(self, plan: Extracting) -> None:
        self._worker = ExtractionWorker(plan)

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        for row in self._worker.run(group, numbered):
            yield {**row, "at": time.time(), "process": os.getpid()}


def busy_rate(rows: Sequence[dict[str, Any]]) -> float:
    """Rows a second while all workers were at work: between the latest of their first rows, and the earliest
    of their last."""
    of: dict[int, list[float]] = {}
    for row in rows:
        of.setdefault(row["process"], []).append(row["at"])
    start, end = max(min(times) for times in of.values()), min(max(times) for times in of.values())
    within = sum(start < row["at"] <= end for row in rows)
    return float(within / (end - start))


def _by_ray(examples: list[Example], workers: int, folder: Path, parts: tuple[str, ...]) -> dict[str, Any]:
    started = time.monotonic()
    with watched(20.0, tree=True) as memory, joined():
        ready = time.monotonic() - started
        identity = CHOICE.open().identity.as_dict()
        store = Store.open(folder, Configuration(identity, composite_named("attnlrp").name))
        plan = Extracting(CHOICE.open_in_worker, store, parts, None, 1)
        rows = list(spread(HeldGroups.of(examples), Timed, plan, Workers(workers)))
        wall = time.monotonic() - started
    assert sorted(row["id"] for row in rows) == sorted(example.id for example in examples)
    return {
        "rows_a_second": busy_rate(rows),
        "processes": len({row["process"] for row in rows}),
        "seconds": wall,
        "seconds_until_joined": ready,
        "peak_bytes": max(memory.tree),
    }


def _by_processes(
    examples: list[Example], workers: int, folder: Path, parts: tuple[str, ...]
) -> dict[str, Any]:
    started = time.monotonic()
    with watched(20.0, tree=True) as memory:
        done = extract(
            examples, CHOICE.open(), folder, parts=parts, workers=workers, load=CHOICE.open_in_worker
        )
    assert done.computed == len(examples)
    return {"seconds": time.monotonic() - started, "peak_bytes": max(memory.tree)}


def sizes(folder: Path, parts: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Bytes a row of each part of a store, and of the list of its examples."""
    found = {
        part: sum(path.stat().st_size for path in (folder / part).iterdir()) / len(examples) for part in parts
    }
    return {
        **found,
        "examples": sum(len(one.prompt) + len(one.response or "") for one in examples) / len(examples),
    }


@benchmark
@count("--rows", 120, "Responses, of the set everyday.")
def main(rows: int) -> Report:
    """Two workers of one thread each against one, by Ray, and the same by two processes."""
    parts = (READING, RELEVANCE)
    examples = load_examples(set_path(Path("everyday")))[:rows]
    with tempfile.TemporaryDirectory(prefix="lrp4rag-") as folder:
        ray = {str(k): _by_ray(examples, k, Path(folder) / f"ray-{k}", parts) for k in (1, 2)}
        pool = _by_processes(examples, 2, Path(folder) / "pool", parts)
        stored = sizes(Path(folder) / "pool", parts, examples)
        same = all(
            (Path(folder) / "ray-2" / part / path.name).read_bytes() == path.read_bytes()
            for part in parts
            for path in (Path(folder) / "pool" / part).iterdir()
        )
    gain = ray["2"]["rows_a_second"] / ray["1"]["rows_a_second"]
    values = {
        "parts": parts,
        "ray": ray,
        "processes": pool,
        "gain": gain,
        "bytes_a_row": stored,
        "equal": same,
    }
    lines = table(
        ["", "rows a second", "seconds in all", "until Ray is there", "peak memory, GB"],
        [
            *(
                [
                    f"Ray, {k} workers",
                    f"{one['rows_a_second']:.2f}",
                    f"{one['seconds']:.0f}",
                    f"{one['seconds_until_joined']:.1f}",
                    f"{one['peak_bytes'] / 1e9:.2f}",
                ]
                for k, one in ray.items()
            ),
            ["2 processes", "", f"{pool['seconds']:.0f}", "", f"{pool['peak_bytes'] / 1e9:.2f}"],
        ],
    )
    return values, [
        *lines,
        "",
        f"two workers against one: {gain:.2f} times the rows a second; equal files: {same}",
    ]


if __name__ == "__main__":
    main()
