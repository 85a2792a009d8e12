"""The benchmarks of speed, memory and precision: what they promise to say, and their arithmetic.

Tiny settings on tiny models; how fast anything is, is not judged here.
"""

from __future__ import annotations

import json
import math
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from benchmarks import harness, long_context, passes, precision, sharing, stream, verdict
from benchmarks.devices import model_of
from lrp4rag.errors import InputError
from tests.benchmarks.conftest import measured


@pytest.mark.usefixtures("tiny")
def test_stream() -> None:
    found = measured(stream.main, "--prompt 12 --new 4 --rounds 1 --segments 3")
    for way in stream.WAYS:
        for key in ("over_generate", "later_over_generate", "tokens_per_second", "first_seconds"):
            assert found[f"{way}_{key}"] > 0
        total = found[f"{way}_first_seconds"] + 3 * found[f"{way}_later_seconds"]
        assert found[f"{way}_tokens_per_second"] == pytest.approx(4 / total)
    assert found["generate_over_generate"] == found["generate_later_over_generate"] == 1
    assert (found["prompt"], found["new"], found["segments"]) == (12, 4, 3)


def test_a_pace_is_that_of_its_marks() -> None:
    pace = stream.Pace.of([10.0, 12.0, 12.5, 13.0])
    assert (pace.first, pace.later, pace.tokens) == (2.0, 0.5, 3)
    assert pace.tokens_per_second == pytest.approx(1.0)


@pytest.mark.usefixtures("tiny")
def test_sharing() -> None:
    found = measured(sharing.main, "--prompt 20 --response 4 --responses 3 --rounds 1")
    for key in ("separate_over_shared", "loop_over_batch", "two_stacks_over_one", "all_over_begun"):
        assert found[key] > 0
    assert found["tokens_over_shared"] == pytest.approx(3 * 23 / (20 + 3 * 3))
    assert found["shared_difference"] < 1e-4
    assert found["batch_difference"] < 1e-4


@pytest.mark.usefixtures("tiny")
def test_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.id for one in precision.cases(1)][-1] == "needle-0"
    monkeypatch.setattr(precision, "EXAMPLES", tmp_path)  # the real ones exceed the tiny reader's window
    rows = measured(precision.main, "--composites attnlrp --needles 2 --rounds 1")["rows"]
    assert {(row["dtype"], row["quantity"]) for row in rows} == {
        (dtype, quantity) for dtype in ("bfloat16", "float16") for quantity in precision.QUANTITIES
    }
    for row in rows:
        assert row["finite"]
        assert 0.9 < row["lowest_correlation"] <= row["correlation"] <= 1
        assert 0 < row["mean_error"] <= row["highest_mean_error"] < 0.5
        assert 0 < row["largest_error"] < 0.5
        assert row["time_over_float32"] > 0


def test_agreement_by_hand() -> None:
    found = precision.agreement(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    assert found["mean_error"] == pytest.approx(1 / 6)
    assert found["largest_error"] == pytest.approx(1 / 3)
    assert found["correlation"] == pytest.approx(3 / math.sqrt(2 * 14 / 3))


def test_what_is_not_finite_has_no_figures() -> None:
    good = precision.Found(np.array([[1.0, 2.0]]), [1.0])
    row = precision.row([good, precision.Found(None, [])], [good, good])
    assert not row["finite"]
    assert row["correlation"] is None
    assert row["time_over_float32"] == 1
    assert "| no |" in precision.lines([row | {"composite": "x", "dtype": "y", "quantity": "prompt"}])[-1]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("what", ["push", "pull"])
@pytest.mark.parametrize("room", [None, 400 * 10**6])
def test_a_cell_of_long_context(what: str, room: int | None) -> None:
    limit = room and room + harness.peak_resident()
    found = long_context.run_here(long_context.Cell(what, 300, 4, limit))
    assert found["error"] is None
    assert found["seconds"] > 0
    assert found["peak_bytes"] >= found["resident_bytes"] > 0
    assert found["estimate_bytes"] > 0
    assert set(found["sizes"]) == {"queries", "tangents", "cotangents", "positions", "tape"}


@pytest.mark.parametrize("error", [InputError("this needs more"), BrokenProcessPool("this died")])
def test_cells_that_fail_and_exponents(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(function: Any, cell: long_context.Cell) -> dict[str, Any]:
        if cell.limit == 1e9:
            raise error
        rest = dict.fromkeys(("peak_bytes", "estimate_over_allocated", "seconds"), 1.0)
        return rest | {"error": None, "allocated_bytes": cell.prompt**1.5, "sizes": {}}

    monkeypatch.setattr(long_context, "apart", apart)
    found = measured(long_context.main, "--prompts 100,200,400 --limits 1")
    assert [cell["error"] for cell in found["cells"]] == [*[None] * 3, *[str(error)] * 3, *[None] * 3]
    assert [fit["what"] for fit in found["exponents"]] == ["push", "pull"]
    assert [fit["exponent"] for fit in found["exponents"]] == pytest.approx([1.5, 1.5])


@pytest.mark.usefixtures("tiny")
def test_passes(tmp_path: Path) -> None:
    out = tmp_path / "passes.json"
    sizes = "--prompt 20 --response 8 --segments 2 --rounds 1"
    found = measured(passes.main, f"--shape tiny {sizes} --out {out}")
    assert json.loads(out.read_text()) == found
    seconds = {one["name"]: one["seconds"] for one in found["passes"]}
    assert set(seconds) == set(passes.TITLES)
    assert min(seconds.values()) > 0
    assert found["peak_memory_over_forward"] > 0
    assert found["backwards_over_push"] == pytest.approx(8 * seconds["backward_row"] / seconds["R_response"])
    whole = seconds["R_prompt"] + 7 * seconds["pull_row"]
    assert found["rows_over_matrix"] == pytest.approx(8 * seconds["forward_backward_row"] / whole)


@pytest.mark.usefixtures("tiny")
def test_verdict() -> None:
    found = measured(verdict.main, "--prompt 30 --response 18 --rounds 1")
    for way in ("forward", "R_response", "fast", "segments", "full"):
        for key in ("over_forward", "processor_over_forward", "seconds", "peak_bytes"):
            assert found[f"{way}_{key}"] > 0
    assert found["forward_over_forward"] == 1


def test_the_first_call_of_a_way_does_not_count() -> None:
    calls = {"a": iter([9, 1, 2]), "b": iter([9, 3, 4])}
    found = harness.in_rounds({name: values.__next__ for name, values in calls.items()}, 2)
    assert found == {"a": [1, 2], "b": [3, 4]}
    assert harness.ratio([2, 6, 4], [1, 2, 4]) == 2


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    lengths = [10, 20, 40, 80]
    assert harness.exponent(lengths, [3 * length**1.7 for length in lengths]) == pytest.approx(1.7)


def test_random_models_have_the_dtype() -> None:
    assert model_of("tiny", "cpu", "bfloat16").dtype == torch.bfloat16
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("command", [long_context, passes, precision, sharing, stream, verdict])
def test_help_teaches(command: Any) -> None:
    text = CliRunner().invoke(command.main, ["--help"]).output
    assert "Examples:" in text
    assert f"python -m {command.__name__}" in text
