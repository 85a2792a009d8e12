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
from click.testing import CliRunner

from benchmarks import harness, long_context, passes, precision, sharing, stream, verdict
from lrp4rag.reader import Reader
from lrp4rag.util.errors import InputError
from tests.tiny import bridge_example

pytestmark = pytest.mark.usefixtures("tiny")


def measured(command: Any, arguments: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    result = CliRunner().invoke(command, [*arguments.split(), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_ratios_of_decoding_are_those_of_tokens_per_second() -> None:
    found = measured(stream.main, "--prompt 12 --new 4 --rounds 1 --segments 3")
    plain = found["generate_first_seconds"] + 3 * found["generate_later_seconds"]
    for way in stream.WAYS:
        total = found[f"{way}_first_seconds"] + 3 * found[f"{way}_later_seconds"]
        assert found[f"{way}_tokens_per_second"] == pytest.approx(4 / total)
        assert found[f"{way}_over_generate"] == pytest.approx(plain / total)
    by_hand = {name: of([10.0, 12.0, 12.5, 13.0]) for name, of in stream.FIGURES.items()}
    assert by_hand == {"tokens_per_second": 1.0, "first_seconds": 2.0, "later_seconds": 0.5}


def test_what_is_shared_is_what_is_computed_apart() -> None:
    found = measured(sharing.main, "--prompt 20 --response 4 --responses 3 --rounds 1")
    assert min(found["separate_over_shared"], found["loop_over_batch"]) > 0
    assert found["tokens_over_shared"] == pytest.approx(3 * 23 / (20 + 3 * 3))
    assert max(found["shared_difference"], found["batch_difference"]) < 1e-4


def test_ratios_of_passes(tmp_path: Path) -> None:
    out = tmp_path / "passes.json"
    sizes = "--prompt 20 --response 8 --segments 2 --rounds 1"
    found = measured(passes.main, f"--shape tiny {sizes} --out {out}")
    assert json.loads(out.read_text()) == found
    seconds = {one["name"]: one["seconds"] for one in found["passes"]}
    assert len(seconds) == 7
    assert found["peak_memory_over_forward"] > 0
    assert found["backwards_over_push"] == pytest.approx(8 * seconds["backward_row"] / seconds["R_response"])
    whole = seconds["R_prompt"] + 7 * seconds["pull_row"]
    assert found["rows_over_matrix"] == pytest.approx(8 * seconds["forward_backward_row"] / whole)


def test_a_verdicts_signals_over_a_forward() -> None:
    found = measured(verdict.main, "--prompt 30 --response 18 --rounds 1")
    for way in ("forward", "R_response", "fast", "segments", "full"):
        ratio = found[f"{way}_seconds"] / found["forward_seconds"]
        assert found[f"{way}_over_forward"] == pytest.approx(ratio)
        assert found[f"{way}_peak_bytes"] > 0


def test_half_precision_against_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    # The real ones exceed the tiny reader's window.
    monkeypatch.setattr(precision, "examples_of", lambda more: [bridge_example(k) for k in range(more)])
    rows = measured(precision.main, "--composites attnlrp --more 2 --rounds 1")["rows"]
    found = [(row["dtype"], row["quantity"]) for row in rows]
    assert found == [(dtype, quantity) for dtype in precision.DTYPES for quantity in precision.QUANTITIES]
    for row in rows:
        assert (row["finite"], row["examples"]) == (True, 2)
        assert 0.9 < row["lowest_correlation"] <= row["correlation"] <= 1
        assert 0 < row["mean_error"] <= row["highest_mean_error"] < 0.5
        assert row["time_over_float32"] > 0


def test_agreement_by_hand() -> None:
    found = precision.agreement(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0]))
    expected = {"mean_error": 1 / 6, "largest_error": 1 / 3, "correlation": 3 / math.sqrt(2 * 14 / 3)}
    assert found == pytest.approx(expected)


def test_what_is_not_finite_has_no_figures() -> None:
    good = [(np.array([[1.0, 2.0]]), 1.0)]
    row = precision.row([good, [(None, 9.0)]], [good, good])
    assert (row["finite"], row["correlation"], row["time_over_float32"]) == (False, None, 1)


@pytest.mark.parametrize("what", ["push", "pull"])
@pytest.mark.parametrize("room", [None, 400 * 10**6])
def test_a_cell_of_long_context(what: str, room: int | None) -> None:
    limit = room and room + harness.peak_resident()
    found = long_context.run_here(long_context.Cell(what, 300, 4, limit))
    assert found["error"] is None
    assert found["peak_bytes"] >= found["resident_bytes"] > 0
    assert min(found["estimate_bytes"], found["seconds"]) > 0
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


def test_a_verdict_on_a_lengthened_prompt(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its passages fill the length that was asked for."""
    monkeypatch.setattr(long_context, "load_examples", lambda path: [bridge_example(k) for k in range(2)])
    monkeypatch.setattr(long_context, "load_reader", lambda **options: tiny_reader)
    found = long_context.run_here(long_context.Cell("texts", 600, 1, None))
    assert found["error"] is None
    assert found["passages"] > 6
    assert 0 < found["tokens_read"] <= 600
    assert found["peak_bytes"] >= found["resident_bytes"] > 0


def test_the_first_call_of_a_way_does_not_count() -> None:
    calls = {"a": iter([9, 1, 2]), "b": iter([9, 3, 4])}
    found = harness.in_rounds({name: values.__next__ for name, values in calls.items()}, 2)
    assert found == {"a": [1, 2], "b": [3, 4]}
    assert harness.ratio([2, 6, 4], [1, 2, 4]) == 2
