"""`python -m benchmarks.cluster.overhead`: what a row costs beside its reader, on 2, 4 and 8 machines and up
to a million rows, and the memory of the process that starts the run. A stand-in for the reader only sleeps.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.cluster.memory import watched
from benchmarks.command import Report, benchmark, listed, table
from lrp4rag.guard.cluster.groups import Numbered
from lrp4rag.guard.cluster.index import index
from lrp4rag.guard.cluster.session import joined
from lrp4rag.guard.cluster.work import Workers, at_once, spread
from lrp4rag.report.figure_text import png_of
from lrp4rag.training.extractor import Group
from lrp4rag.util.files import write_atomically
from tests.guard.cluster.local import cluster_of

EACH = 4
"""Responses to one prompt."""


class Sleeping:
    """Stands in for a reader: so many seconds a row, and nothing else."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def run(self, group: Group, numbered: Sequence[Numbered]) -> Iterator[dict[str, Any]]:
        time.sleep(self._seconds * len(numbered))
        for row, _, example in numbered:
            yield {"row": row, "id": example.id}


def written(path: Path, rows: int) -> Path:
    """Rows with passages of a usual length, about 1 KB each, four of one prompt."""
    filling = "It was built between 1871 and 1873 and stands on the northern tip of the island. " * 5
    with path.open("w") as stream:
        for k in range(rows):
            prompt, response = divmod(k, EACH)
            passages = [f"{filling}Number {prompt}.", f"The tower is {prompt} metres tall. {filling}"]
            row = {
                "id": str(k),
                "question": f"How tall is tower {prompt}?",
                "passages": passages,
                "response": f"It is {prompt} metres tall, says {response}.",
            }
            stream.write(json.dumps(row) + "\n")
    return path


def measure(address: str, path: Path, rows: int, nodes: int, sleep: float) -> dict[str, Any]:
    with joined(address), watched() as memory:
        started = time.monotonic()
        groups = index([str(path)])
        indexed = time.monotonic() - started
        first, seen = 0.0, 0
        for _ in spread(groups, Sleeping, sleep, Workers(nodes)):
            seen += 1
            if seen == 1:
                first = time.monotonic()
        ended = time.monotonic()
    assert seen == rows
    spent = ended - first
    return {
        "rows": rows,
        "machines": nodes,
        "sleep": sleep,
        "index_seconds": indexed,
        "first_row_seconds": first - started - indexed,
        "seconds": spent,
        "overhead_of_a_row": overhead(spent, rows, nodes, sleep, len(groups)),
        "memory": {"seconds": memory.seconds, "bytes": memory.own},
    }


def overhead(spent: float, rows: int, nodes: int, sleep: float, groups: int) -> float:
    """Seconds of a worker that a row takes beside its sleep. The clock starts when the first rows come; by
    then each worker has had so many, and they are not counted."""
    early = nodes * at_once(groups, rows, nodes) * EACH
    return (spent * nodes - (rows - early) * sleep) / (rows - early)


@benchmark
@listed("--machines", click.INT, "2,4,8", "Machines of the cluster, each with one worker.")
@listed("--rows", click.INT, "10000,100000,1000000", "Rows; all but the fewest on the most machines only.")
@click.option("--sleep", default=0.004, show_default=True, help="Seconds that the stand-in takes a row.")
@click.option("--plot", type=click.Path(), help="Draw the memory of the driver here (PNG).")
def main(machines: tuple[int, ...], rows: tuple[int, ...], sleep: float, plot: str | None) -> Report:
    """Overhead of a row, and memory of the process that starts the run."""
    found = []
    with tempfile.TemporaryDirectory(prefix="lrp4rag-") as folder:
        for nodes in machines:
            with cluster_of(*[1] * nodes) as cluster:
                for many in rows if nodes == max(machines) else rows[:1]:
                    path = written(Path(folder) / f"{many}.jsonl", many)
                    found.append(measure(cluster.address, path, many, nodes, sleep))
                    path.unlink()
    if plot is not None:
        draw(found, Path(plot))
    lines = table(
        ["machines", "rows", "index, s", "first row, s", "then, s", "overhead of a row, ms", "driver, MB"],
        [
            [
                f"{one['machines']}",
                f"{one['rows']:,}",
                f"{one['index_seconds']:.1f}",
                f"{one['first_row_seconds']:.1f}",
                f"{one['seconds']:.1f}",
                f"{1000 * one['overhead_of_a_row']:.2f}",
                f"{max(one['memory']['bytes']) / 1e6:.0f}",
            ]
            for one in found
        ],
    )
    return {"runs": found}, lines


def draw(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Memory of the driver over the part of the run that is done."""
    from experiments.figures.style import blank, themed

    with themed():
        drawn = blank((8.0, 4.0))
        ax = drawn.subplots()
        for one in runs:
            seconds, held = one["memory"]["seconds"], one["memory"]["bytes"]
            done = [second / max(seconds[-1], 1e-9) for second in seconds]
            label = f"{one['rows']:,} rows, {one['machines']} machines"
            ax.plot(done, [count / 1e6 for count in held], label=label)
        ax.set(xlabel="part of the run that is over", ylabel="memory of the driver, MB", ylim=(0, None))
        ax.legend(frameon=False)
        write_atomically(path, png_of(drawn, 120))


if __name__ == "__main__":
    main()
