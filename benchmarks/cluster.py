"""What Ray on one machine gains and costs: one reader against two, and two processes without Ray."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.command import Report, benchmark, count, table
from lrp4rag.features.parts import READING, RELEVANCE
from lrp4rag.training.sets import set_path
from lrp4rag.util.errors import LRP4RAGError

PARTS = (READING, RELEVANCE)
WAYS = {"Ray, one worker": ("ray", 1), "Ray, two workers": ("ray", 2), "two processes": ("local", 2)}


def extract(store: Path, engine: str, workers: int, limit: int) -> dict[str, float]:
    """Run `lrp4rag extract` on the bundled set; its seconds, rows a second and the peak memory of all its
    processes, whose shared pages count once."""
    command = [sys.executable, "-m", "lrp4rag", "extract", str(set_path(Path("everyday")))]
    command += ["--store", str(store), "--parts", ",".join(PARTS), "--device", "cpu", "--limit", str(limit)]
    command += ["--engine", engine, "--workers", str(workers)]
    started, peak = time.monotonic(), 0
    process = psutil.Popen(command)
    while process.poll() is None:
        peak = max(peak, sum(map(_memory, [process, *process.children(recursive=True)])))
        time.sleep(2)
    if process.returncode:
        raise LRP4RAGError(f"extraction ended with {process.returncode}: {subprocess.list2cmdline(command)}")
    written = np.sort([path.stat().st_mtime for path in (store / READING).iterdir()])
    return {
        "rows_a_second": middle_rate(written),
        "seconds": time.monotonic() - started,
        "peak_bytes": peak,
    }


def middle_rate(times: np.ndarray) -> float:
    """Rows a second between the first and the last quarter of the rows, while all workers are at work."""
    first, last = len(times) // 4, len(times) - 1 - len(times) // 4
    return float((last - first) / (times[last] - times[first]))


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:  # it has ended
        return 0


def contents(store: Path) -> dict[str, bytes]:
    return {f"{part}/{path.name}": path.read_bytes() for part in PARTS for path in (store / part).iterdir()}


@benchmark
@count("--limit", 10, "Questions of the set everyday.", least=2)
def main(limit: int) -> Report:
    """Rows a second, seconds and memory of one and of two readers by Ray, and of two processes without.

    \b
    Example:
      python -m benchmarks.cluster --out docs/results/cluster/scaling.json
    """
    with tempfile.TemporaryDirectory(prefix="lrp4rag-") as folder:
        stores = {name: Path(folder) / str(number) for number, name in enumerate(WAYS)}
        ways: dict[str, dict[str, Any]] = {
            name: extract(stores[name], engine, workers, limit) for name, (engine, workers) in WAYS.items()
        }
        first, *others = map(contents, stores.values())
    one, two, _ = (way["rows_a_second"] for way in ways.values())
    result = {"ways": ways, "gain": two / one, "equal": all(other == first for other in others)}
    rows = [
        (name, f"{way['rows_a_second']:.2f}", f"{way['seconds']:.0f}", f"{way['peak_bytes'] / 1e9:.2f}")
        for name, way in ways.items()
    ]
    lines = table(("", "rows a second", "seconds in all", "peak memory, GB"), rows)
    return result, [*lines, "", f"two workers over one: {two / one:.2f}; equal files: {result['equal']}"]


if __name__ == "__main__":
    main()
