"""What a GPU does, rehearsed on this machine: every step runs, and a run that is cut, or that finds too
little memory, leaves what it has."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from benchmarks import gpu, harness
from benchmarks.cells import Cell

KEY = "A part: tiny"


def run(out: Path, *options: str) -> Result:
    return CliRunner().invoke(
        gpu.main, ["--rehearse", "--device", "cpu", "--dtype", "float32", "--out", str(out), *options]
    )


def cells_in(out: Path) -> dict[str, Cell]:
    cells: dict[str, Cell] = json.loads((out / "gpu.json").read_text())["cells"]
    return cells


def replace_parts(monkeypatch: pytest.MonkeyPatch, measure: Callable[..., Cell]) -> None:
    parts = [gpu.Part("A part", measure, 1, [("tiny",)])]
    monkeypatch.setattr(gpu, "parts_of", lambda *_: parts)


def test_a_rehearsal_measures_all_and_a_second_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each way through a model is compared once: the composites have tests of their own.
    monkeypatch.setattr(gpu, "COMPOSITES", ("attnlrp",))
    monkeypatch.setattr(harness, "forget_peak", lambda: None)  # it takes most of the time
    first = run(tmp_path)
    assert first.exit_code == 0, first.output
    cells, page = cells_in(tmp_path), (tmp_path / "README.md").read_text()
    parts = gpu.parts_of(gpu.REHEARSAL, "float32")
    assert list(cells) == [key for part in parts for key, _ in part.calls()]
    assert all(f"## {part.title}" in page for part in parts)
    assert sum(part.share for part in parts) == pytest.approx(1)
    for dtype, tolerance in gpu.TOLERANCE.items():
        ways = cells[f"Correctness: {dtype}, attnlrp"]
        assert ways.pop("right")
        assert set(ways) == {"push", "pull", "R_prompt", "shared_prefix", "batch", "stream", "adjoint"}
        assert 0 < max(ways.values()) <= tolerance
    figures = [value for cell in cells.values() for value in cell.values() if isinstance(value, float)]
    assert all(math.isfinite(value) and value > 0 for value in figures)
    row = cells["Other libraries: tiny, captum"]
    expected = gpu.REHEARSAL.response * row["row_over_forward"]
    assert row["R_response_over_forward"] == pytest.approx(expected)
    monkeypatch.setattr(gpu, "outcome", lambda _: pytest.fail("measured again"))
    again = run(tmp_path)
    assert (again.exit_code, cells_in(tmp_path).keys()) == (0, cells.keys())


@pytest.mark.parametrize(
    ("error", "cell", "exit_code", "times"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), {"note": "out of memory"}, 0, 1),
        (ValueError("a | b"), {"error": "ValueError: a | b"}, 1, 2),
    ],
)
def test_only_errors_are_measured_again(
    error: Exception,
    cell: Cell,
    exit_code: int,
    times: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []

    def measure(*arguments: Any) -> Cell:
        calls.append(arguments)
        raise error

    replace_parts(monkeypatch, measure)
    assert [run(tmp_path).exit_code for _ in range(2)] == [exit_code] * 2
    assert cells_in(tmp_path) == {KEY: cell}
    assert len(calls) == times


def test_relevance_that_is_wrong_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "difference", lambda *_: math.nan)
    replace_parts(
        monkeypatch, lambda models, lengths, _: gpu.correctness(models, lengths, "float32", "attnlrp")
    )
    assert run(tmp_path).exit_code == 1
    assert cells_in(tmp_path)[KEY]["push"] == "not finite"
    assert run(tmp_path).exit_code == 1  # what was measured before counts too


def test_what_takes_too_long_is_cut_and_measured_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_parts(monkeypatch, lambda *_: time.sleep(60))
    assert run(tmp_path, "--minutes", "0.003").exit_code == 0
    assert not (tmp_path / "gpu.json").exists()
    assert "Not measured: tiny." in (tmp_path / "README.md").read_text()
    replace_parts(monkeypatch, lambda *_: {"seconds": 1.0})
    assert run(tmp_path).exit_code == 0
    assert cells_in(tmp_path) == {KEY: {"seconds": 1.0}}


def test_another_setup_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_parts(monkeypatch, lambda *_: {"seconds": 1.0})
    assert run(tmp_path).exit_code == 0
    assert run(tmp_path, "--dtype", "float16").exit_code == 2
