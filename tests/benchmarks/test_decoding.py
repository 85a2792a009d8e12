"""The benchmarks of streams, shared prompts, precision, long prompts and a GPU: what they promise to say.

Tiny settings on tiny models; how fast anything is, is not judged here.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from benchmarks import gpu, gpu_check, long_context, precision, sharing, stream
from benchmarks.devices import known_limits
from benchmarks.gpu_shapes import random_model, weights_read
from lrp4rag.reader import Reader


@pytest.fixture
def tiny(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Benchmarks load the tiny reader in place of the default one."""

    def load(*_: Any, dtype: str = "float32", **__: Any) -> Reader:
        if dtype == "float32":
            return tiny_reader
        model = type(tiny_reader.model)(tiny_reader.model.config).to(getattr(torch, dtype)).eval()
        model.load_state_dict(tiny_reader.model.state_dict())
        return Reader(model, tiny_reader.tokenizer, tiny_reader.identity)

    for module in (gpu_check, long_context, precision, sharing, stream):
        monkeypatch.setattr(module, "load_reader", load)
    return tiny_reader


def run(command: Any, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.usefixtures("tiny")
def test_stream() -> None:
    found = run(stream.main, "--prompt", "12", "--new", "4", "--rounds", "1", "--segments", "3")
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
    found = run(sharing.main, "--prompt", "20", "--response", "4", "--responses", "3", "--rounds", "1")
    assert found["separate_over_shared"] > 0
    assert found["loop_over_batch"] > 0
    assert found["tokens_over_shared"] == pytest.approx(3 * 23 / (20 + 3 * 3))
    assert found["shared_difference"] < 1e-4
    assert found["batch_difference"] < 1e-4


@pytest.mark.usefixtures("tiny")
def test_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.id for one in precision.cases(1)][-1] == "needle-0"
    assert len(precision.cases(1)) == 3
    monkeypatch.setattr(precision, "EXAMPLES", tmp_path)  # the real ones exceed the tiny reader's window
    page = tmp_path / "precision.md"
    arguments = ("--composites", "attnlrp", "--needles", "2", "--rounds", "1", "--markdown", str(page))
    rows = run(precision.main, *arguments)["rows"]
    assert {(row["dtype"], row["quantity"]) for row in rows} == {
        (dtype, quantity) for dtype in precision.HALVES for quantity in precision.QUANTITIES
    }
    for row in rows:
        assert row["finite"]
        assert 0.9 < row["lowest_correlation"] <= row["correlation"] <= 1
        assert 0 < row["mean_error"] <= row["highest_mean_error"] < 0.5
        assert 0 < row["largest_error"] < 0.5
        assert row["time_over_float32"] > 0
    assert page.read_text().count("\n| attnlrp |") == len(rows)


def test_agreement_by_hand() -> None:
    found = precision.Agreement.of(
        torch.tensor([1.0, 2.0, 4.0]).numpy(), torch.tensor([1.0, 2.0, 3.0]).numpy()
    )
    assert found.mean_error == pytest.approx(1 / 6)
    assert found.largest_error == pytest.approx(1 / 3)
    assert found.correlation == pytest.approx(3 / math.sqrt(2 * 14 / 3))


def test_what_is_not_finite_has_no_figures() -> None:
    good = precision.Found(torch.tensor([[1.0, 2.0]]).numpy(), [1.0])
    row = precision.row([good, precision.Found(None, [])], [good, good])
    assert not row["finite"]
    assert row["correlation"] is None
    assert row["time_over_float32"] == 1
    assert "| no |" in precision.table([row | {"composite": "x", "dtype": "y", "quantity": "prompt"}])[-1]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("what", ["push", "pull"])
def test_a_cell_of_long_context(what: str) -> None:
    limit = long_context.peak_resident() + 400 * 10**6
    for chosen in (None, limit):
        found = long_context.run_here(long_context.Cell(what, 300, 4, chosen))
        assert found["error"] is None
        assert found["seconds"] > 0
        assert found["peak_bytes"] >= found["resident_bytes"] > 0
        assert found["estimate_bytes"] > 0
        assert set(found["sizes"]) == {"queries", "tangents", "cotangents", "positions", "tape"}


def test_cells_that_fail_and_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(cell: long_context.Cell) -> dict[str, Any]:
        about = {"what": cell.what, "prompt": cell.prompt, "limit_bytes": cell.limit}
        if cell.limit == 1e9:
            return about | {"error": "this needs more"}
        rest = dict.fromkeys(("peak_bytes", "estimate_over_allocated", "seconds"), 1.0)
        return about | rest | {"error": None, "allocated_bytes": cell.prompt**1.5, "sizes": {}}

    monkeypatch.setattr(long_context, "run_apart", fake)
    found = run(long_context.main, "--prompts", "100,200,400", "--limits", "1")
    assert len(found["cells"]) == 9
    assert [fit["what"] for fit in found["exponents"]] == ["push", "pull"]
    assert [fit["exponent"] for fit in found["exponents"]] == pytest.approx([1.5, 1.5])


@pytest.mark.usefixtures("tiny")
def test_gpu_on_a_cpu(tmp_path: Path) -> None:
    page = tmp_path / "gpu.md"
    sizes = ("--prompt", "20", "--response", "8", "--new", "4", "--segments", "2", "--rounds", "1")
    peaks = ("--tflops", "1", "--bandwidth", "0.1", "--markdown", str(page))
    found = run(gpu.main, "--shape", "tiny", "--device", "cpu", *sizes, *peaks)
    passes = {one["name"]: one for one in found["passes"]}
    assert all(one["seconds"] > 0 and one["over_forward"] > 0 for one in passes.values())
    for one in passes.values():
        assert one["share_of_arithmetic"] == pytest.approx(one["flops"] / one["seconds"] / 1e12)
    # A tangent goes through every linear layer as the primal does, and the output embedding is not run.
    assert 1.5 < passes["R_response"]["flops"] / passes["forward"]["flops"] < 4
    assert passes["per_passage"]["flops"] > passes["R_response"]["flops"]
    assert passes["matrix"]["flops"] > passes["R_prompt"]["flops"]
    assert found["streaming"]["share_of_bandwidth_stream"] > 0
    assert len(found["targets"]) == 4
    assert found["check"] == dict.fromkeys(found["check"], 0.0)
    assert found["peak_flops"] == 1e12
    assert all(one["name"] in page.read_text() for one in found["targets"])


def test_weights_that_a_step_reads() -> None:
    model = random_model("tiny", torch.device("cpu"), torch.bfloat16)
    embeddings = model.get_input_embeddings().weight.numel()
    assert weights_read(model) == 2 * (sum(one.numel() for one in model.parameters()) - embeddings)


def test_peaks_of_devices() -> None:
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA A100-SXM4-80GB")
    limits = [known_limits(name) for name in names]
    assert [one and one.bandwidth for one in limits] == [4.8e12, 3.35e12, 2.0e12, 2.039e12]
    assert known_limits("Intel(R) Xeon(R)") is None


def test_an_unknown_device_needs_both_peaks() -> None:
    arguments = ["--shape", "tiny", "--device", "cpu", "--no-check", "--tflops", "1"]
    result = CliRunner().invoke(gpu.main, arguments)
    assert result.exit_code == 2
    assert "--bandwidth" in result.output


@pytest.mark.parametrize("command", [stream, sharing, precision, long_context, gpu])
def test_help_teaches(command: Any) -> None:
    text = CliRunner().invoke(command.main, ["--help"]).output
    assert "Examples:" in text
    assert f"python -m {command.__name__}" in text
