"""`python -m benchmarks.cluster.cost`: what up to a billion responses take, on paper, from measured
coefficients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from benchmarks.command import Report, benchmark, listed, table

RESULTS = Path(__file__).parents[2] / "docs/results/cluster"
JOB = 10_000_000
"""Responses of one run, of more than which DATA is split: the process that starts it keeps their places."""


def coefficients(scaling: dict[str, Any], overhead: dict[str, Any]) -> dict[str, Any]:
    """Of one response: seconds of a core in the reader and beside it, bytes read and written."""
    largest = max(overhead["runs"], key=lambda run: (run["rows"], run["machines"]))
    stored = dict(scaling["bytes_a_row"])
    text = stored.pop("examples")
    return {
        "reader_core_seconds": 1 / scaling["ray"]["1"]["rows_a_second"],
        "beside_core_seconds": largest["overhead_of_a_row"],
        "reading_data_seconds": largest["index_seconds"] / largest["rows"],
        "text_bytes": text,
        "stored_bytes": stored,
        # Lines are counted, rows checked, and read by their workers; then they go to the process that starts
        # the run, and from there into the store.
        "network_bytes": 5 * text + sum(stored.values()),
        "driver_bytes": driver_bytes(overhead["runs"]),
    }


def driver_bytes(runs: list[dict[str, Any]]) -> float:
    """Bytes that each further row costs the process that starts the run: from what the fewest rows leave to
    the most that the most rows need, of the runs on the most machines."""
    most = max(run["machines"] for run in runs)
    held = sorted(
        (run["rows"], run["memory"]["bytes"][-1], max(run["memory"]["bytes"]))
        for run in runs
        if run["machines"] == most
    )
    (few, low, _), (many, _, high) = held[0], held[-1]
    return float((high - low) / (many - few))


def of(rows: float, one: dict[str, Any]) -> dict[str, float]:
    return {
        "rows": rows,
        "core_hours": rows * (one["reader_core_seconds"] + one["beside_core_seconds"]) / 3600,
        "stored_terabytes": rows * (sum(one["stored_bytes"].values()) + one["text_bytes"]) / 1e12,
        "files": rows * len(one["stored_bytes"]),
        "network_terabytes": rows * one["network_bytes"] / 1e12,
        "jobs": -(-rows // JOB),
        "driver_gigabytes": min(rows, JOB) * one["driver_bytes"] / 1e9,
    }


@benchmark
@listed("--rows", click.FLOAT, "1e3,1e6,1e7,1e8,1e9", "Responses.")
def main(rows: tuple[float, ...]) -> Report:
    """Core-hours, storage and network of so many responses (parts reading and relevance), computed of what
    benchmarks.cluster.scaling and benchmarks.cluster.overhead measured."""
    scaling, overhead = (
        json.loads((RESULTS / f"{name}.json").read_text()) for name in ("scaling", "overhead")
    )
    one = coefficients(scaling, overhead)
    found = [of(many, one) for many in rows]
    head = ["responses", "core-hours", "days on 100 cores", "stored, TB", "files", "over the network, TB"]
    return (
        {"coefficients": one, "rows_of": found},
        table([*head, "runs", "driver of a run, GB"], [_line(row) for row in found]),
    )


def _line(row: dict[str, float]) -> list[str]:
    times = f"{row['core_hours']:,.1f}", f"{row['core_hours'] / 2400:,.2f}"
    stored = f"{row['stored_terabytes']:.4g}", f"{row['files']:,.0f}", f"{row['network_terabytes']:.4g}"
    return [f"{row['rows']:,.0f}", *times, *stored, f"{row['jobs']:,.0f}", f"{row['driver_gigabytes']:.2f}"]


if __name__ == "__main__":
    main()
