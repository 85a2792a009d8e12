"""The arithmetic of the cluster's benchmarks; what they measure is in docs/results/cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cluster.cost import JOB, coefficients, driver_bytes, of
from benchmarks.cluster.overhead import EACH, draw, written
from benchmarks.cluster.scaling import busy_rate
from lrp4rag.data import load_examples


def run(rows: int, machines: int, seconds: float, overhead: float, peak: int) -> dict:
    memory = {"seconds": [1.0, 2.0], "bytes": [peak // 2, peak]}
    return {
        "rows": rows,
        "machines": machines,
        "index_seconds": seconds,
        "overhead_of_a_row": overhead,
        "memory": memory,
    }


RUNS = [run(100, 2, 1.0, 0.5, 9), run(100, 8, 1.0, 0.2, 1000), run(1100, 8, 2.2, 0.1, 61000)]
SCALING = {
    "ray": {"1": {"rows_a_second": 0.5}},
    "bytes_a_row": {"reading": 6000.0, "relevance": 2000.0, "examples": 1000.0},
}


def test_rates_are_of_the_time_in_which_all_work() -> None:
    slow = [{"process": 1, "at": at} for at in (10.0, 12.0, 14.0, 16.0)]
    late = [{"process": 2, "at": at} for at in (12.0, 14.0, 16.0, 18.0)]
    assert busy_rate(slow) == pytest.approx(0.5)
    assert busy_rate(slow + late) == pytest.approx(4 / 4)  # after 12, until 16


def test_a_billion_rows_are_so_many_times_one() -> None:
    one = coefficients(SCALING, {"runs": RUNS})
    assert one["reader_core_seconds"] == 2.0
    assert one["beside_core_seconds"] == 0.1
    assert one["network_bytes"] == 5 * 1000 + 8000
    assert driver_bytes(RUNS) == 60
    found = of(1e9, one)
    assert found["core_hours"] == pytest.approx(2.1e9 / 3600)
    assert found["stored_terabytes"] == pytest.approx(9.0)
    assert found["files"] == 2e9
    assert (found["jobs"], found["driver_gigabytes"]) == (1e9 / JOB, pytest.approx(0.6))


def test_what_is_measured_with_is_data(tmp_path: Path) -> None:
    examples = load_examples(written(tmp_path / "d.jsonl", 9))
    assert [example.id for example in examples] == [str(k) for k in range(9)]
    assert len({example.prompt for example in examples}) == -(-9 // EACH)


def test_the_plot_is_drawn(tmp_path: Path) -> None:
    draw(RUNS, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_stored_results_are_what_the_cost_is_computed_of() -> None:
    folder = Path(__file__).parents[2] / "docs/results/cluster"
    scaling, overhead, cost = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("scaling", "overhead", "cost")
    )
    assert cost["coefficients"] == coefficients(scaling, overhead)
