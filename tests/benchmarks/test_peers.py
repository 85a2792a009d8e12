"""The peers: their numbers on a tiny reader, their processes and the arithmetic of the table."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from benchmarks.harness import Example, difference
from benchmarks.peers import environments, run, worker
from benchmarks.peers.methods import PEERS
from lrp4rag.util.errors import InputError, LRP4RAGError

TOLERANCE = 1e-4  # float32


@pytest.fixture
def model(reader_folder: Path) -> Any:
    return worker.load_model(str(reader_folder))


@pytest.fixture
def example(model: Any) -> Example:
    return Example.random(11, 7, model.config.vocab_size)


def peer(name: str, model: Any, example: Example, composite: str = "paper") -> Any:
    return PEERS[name](model, example, composite)


def rows(method: Any) -> torch.Tensor:
    return torch.stack([method.row(j).detach() for j in range(7)])


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return found.shape == expected.shape and difference(found.detach(), expected.detach()) < TOLERANCE


# LXT's peer on a model that LXT has not patched is Gradient x Input.


@pytest.mark.parametrize("name", ["ours", "lxt"])
def test_rows_and_means_are_those_of_the_papers_loop(name: str, model: Any, example: Example) -> None:
    expected = rows(peer("paper-loop", model, example))
    found = peer(name, model, example)
    assert expected.shape == (7, 11)
    assert close(rows(found), expected)
    assert close(found.prompt(), expected.mean(0))
    if "response" in found.whole:
        assert close(found.response(), expected.mean(1))


def test_our_plain_forward_is_unpatched(model: Any, example: Example) -> None:
    ours = peer("ours", model, example, "attnlrp")
    before = ours.row(1)
    plain = ours.forward()
    assert torch.allclose(ours.row(1), before)
    ours._open.close()
    assert torch.equal(plain, peer("paper-loop", model, example).forward())


def test_captums_gradient_is_that_of_the_log_probability(model: Any, example: Example) -> None:
    row = peer("captum-gradient", model, example).row(4)
    prefix = torch.tensor([[*example.prompt_ids, *example.response_ids[:4]]])
    embeddings = model.get_input_embeddings()(prefix).detach().requires_grad_()
    logs = model(inputs_embeds=embeddings).logits[0, -1].log_softmax(-1)
    (gradient,) = torch.autograd.grad(logs[example.response_ids[4]], embeddings)
    assert close(row, (gradient * embeddings.detach())[0, :11].sum(-1))


def test_lxt_itself_agrees_with_ours(reader_folder: Path) -> None:
    task = {"model": str(reader_folder), "prompt": 11, "response": 7, "rows": list(range(7))}
    try:
        environments.python_of("lxt")
    except InputError as error:
        pytest.skip(f"LXT: {error}")
    found = run.errors([run.run("lxt", task)], [run.run("ours", task)])
    assert set(found) == {"logits", "prompt", "row", "response"}
    assert max(found.values()) < TOLERANCE


def test_an_environment_of_other_requirements_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mark = environments.environment() / environments.COMPLETE
    mark.parent.mkdir(parents=True)
    mark.write_text("torch==1\n")
    with pytest.raises(InputError):
        environments.python_of("lxt")
    mark.write_text(environments.REQUIREMENTS.read_text())
    assert environments.python_of("lxt") == mark.parent / "bin" / "python"


def test_old_transformers_get_the_rotary_base_that_new_ones_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"rope_theta": 100000.0, "rope_type": "default"}
    config = SimpleNamespace(rope_theta=10000.0, rope_scaling={}, rope_parameters=parameters)
    monkeypatch.setattr(worker.importlib.metadata, "version", lambda _: "4.57.6")
    worker._old_rope(config)
    assert (config.rope_theta, config.rope_scaling) == (100000.0, None)


def test_a_run_of_fresh_processes(
    reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = [
        "--prompt",
        "12",
        "--response",
        "4",
        "--rounds",
        "1",
        "--reader",
        str(reader_folder),
        "--json",
    ]
    result = CliRunner().invoke(run.main, [*arguments, "--peers", "lxt,paper-loop"], catch_exceptions=False)
    peers = json.loads(result.stdout)["peers"]
    assert set(peers) == {"ours", "lxt", "paper-loop"}
    assert set(peers["lxt"]) == {"reason"}
    loop = peers["paper-loop"]
    assert max(loop["errors"].values()) < TOLERANCE
    assert loop["response_seconds"] == loop["matrix_seconds"] == pytest.approx(4 * loop["row_seconds"])
    assert peers["ours"]["peak_bytes"]["forward"] > 1e7
    with pytest.raises(LRP4RAGError):
        run.run("ours", {"model": "none", "prompt": 1, "response": 1, "rows": []})


def test_timed_rows_lie_in_the_middle_of_equal_parts() -> None:
    assert run.rows_of(240, 2) == [[20, 100, 180], [60, 140, 220]]
    assert run.rows_of(2, 1) == [[0, 1]]


def test_totals_count_what_rows_share_once() -> None:
    seconds = {"forward": 1.0, "prompt": 5.0, "row 10": 2.0, "row 60": 4.0}
    found = run.summary([{"seconds": seconds, "peak_bytes": dict.fromkeys(seconds, 9)}], ["prompt"], 100)
    assert (found["prompt_seconds"], found["row_seconds"]) == (5.0, 3.0)
    assert found["matrix_seconds"] == found["response_seconds"] == 2.0 + 300.0
