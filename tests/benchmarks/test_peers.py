"""The peers' numbers on a tiny reader, and the processes that they run in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import torch

from benchmarks.harness import Example
from benchmarks.peers import client, environments, totals, worker
from benchmarks.peers.captum_peer import CaptumAblation, CaptumGradient
from benchmarks.peers.client import Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.lxt_peer import Lxt
from benchmarks.peers.ours import Ours
from benchmarks.peers.paper_loop import PaperLoop
from benchmarks.peers.worker import Peer

TOLERANCE = 1e-4  # float32


@pytest.fixture
def model(reader_folder: Path) -> Any:
    return worker.load_model(str(reader_folder))


def peer(kind: type[Peer], model: Any, example: Example, composite: str = "paper") -> Peer:
    return kind(model, example, {"composite": composite})


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return totals.relative_error(found.flatten().tolist(), expected.flatten().tolist()) < TOLERANCE


def log_probabilities(model: Any, ids: list[int], n: int) -> torch.Tensor:
    with torch.no_grad():
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return torch.stack([logs[k - 1, ids[k]] for k in range(n, len(ids))])


def test_the_papers_loop_agrees_with_ours_under_its_composite(model: Any, example: Example):
    rows = peer(PaperLoop, model, example).units(0, 7)
    ours = peer(Ours, model, example)
    assert rows.shape == (7, 11)
    assert close(ours.units(0, 7), rows)
    assert close(ours.response(), rows.mean(1))
    assert close(ours.prompt(), rows.mean(0))


def test_one_kept_graph_gives_the_same_rows_as_growing_prefixes(model: Any, example: Example):
    # LXT's worker on a model that LXT has not patched is Gradient x Input.
    graph = peer(Lxt, model, example)
    rows = peer(PaperLoop, model, example).units(0, 7)
    assert close(graph.units(2, 3), rows[2:5])
    assert close(graph.prompt(), rows.mean(0))


def test_ours_gives_the_plain_models_logits_and_leaves_it_as_it_was(model: Any, example: Example):
    ours = peer(Ours, model, example, "attnlrp")
    before = ours.units(1, 2)
    assert torch.equal(ours.forward(), peer(PaperLoop, model, example).forward())
    assert torch.allclose(ours.units(1, 2), before)


def test_captums_gradient_is_that_of_the_log_probability(model: Any, example: Example):
    row = peer(CaptumGradient, model, example).units(4, 1)[0]
    prefix = torch.tensor([[*example.prompt_ids, *example.response_ids[:4]]])
    embeddings = model.get_input_embeddings()(prefix).detach().requires_grad_()
    logs = model(inputs_embeds=embeddings).logits[0, -1].log_softmax(-1)
    (gradient,) = torch.autograd.grad(logs[example.response_ids[4]], embeddings)
    assert close(row, (gradient * embeddings.detach())[0, :11].sum(-1))


def test_captums_ablation_is_a_difference_of_log_probabilities(model: Any, example: Example):
    column = peer(CaptumAblation, model, example).units(3, 1)[:, 0]
    ids = [*example.prompt_ids, *example.response_ids]
    changed = [*ids[:3], 0, *ids[4:]]
    assert column.shape == (7,)
    assert close(column, log_probabilities(model, ids, 11) - log_probabilities(model, changed, 11))


def test_ablation_refuses_to_time_two_columns_as_one(model: Any, example: Example):
    twice = Example((example.prompt_ids[0], *example.prompt_ids), example.response_ids)
    with pytest.raises(ValueError, match="twice"):
        peer(CaptumAblation, model, twice).units(0, 1)


def test_a_worker_answers_and_says_why_it_died(job: Job):
    with Worker("ours", job) as process:
        assert process.about["whole"] == ["response", "prompt"]
        answer = process.ask("response")
        assert len(answer.values) == 7
        assert answer.seconds > 0
        assert answer.peak_bytes > 1e7
        with pytest.raises(PeerError, match="no_such"):
            process.ask("no_such_request")
        process._process.kill()
        with pytest.raises(PeerError, match="signal 9"):
            process.ask("response")


def test_a_peer_that_takes_too_long_is_stopped(job: Job, monkeypatch: pytest.MonkeyPatch):
    slow = "import sys, time; sys.stdin.readline(); time.sleep(60)"
    monkeypatch.setattr(client, "STARTUP_SECONDS", 0.2)
    real = client.subprocess.Popen
    monkeypatch.setattr(client.subprocess, "Popen", lambda c, **k: real([c[0], "-c", slow], **k))
    with pytest.raises(UnavailableError, match="took more than 0 s"):
        Worker("ours", job)


def test_an_environment_of_other_requirements_is_none(tmp_path: Path):
    for _ in range(2):
        with pytest.raises(UnavailableError, match="environments lxt"):
            environments.python_of("lxt", tmp_path)
        (tmp_path / "lxt").mkdir(exist_ok=True)
        (tmp_path / "lxt" / environments.COMPLETE).write_text("torch==1\n")
    with pytest.raises(click.ClickException, match="no virtual environment"):
        environments.make("lxt", tmp_path)
    (tmp_path / "lxt" / environments.COMPLETE).write_text(environments.requirements("lxt").read_text())
    assert environments.python_of("lxt", tmp_path) == tmp_path / "lxt" / "bin" / "python"


def test_old_transformers_get_the_rotary_base_that_new_ones_wrote(monkeypatch: pytest.MonkeyPatch):
    class Config:
        rope_theta = 10000.0
        rope_scaling = None
        rope_parameters = {"rope_theta": 100000.0, "rope_type": "default"}  # noqa: RUF012

    config = Config()
    monkeypatch.setattr(worker.importlib.metadata, "version", lambda _: "4.57.6")
    worker._old_rope(config)
    assert (config.rope_theta, config.rope_scaling) == (100000.0, None)


def test_lxt_itself_agrees_with_ours(job: Job):
    real = Job(job.model, job.prompt_ids, job.response_ids, environments.default_folder(), 60.0)
    try:
        with Worker("lxt", real) as process:
            rows = torch.tensor(process.ask("units", first=0, count=7).values)
            logits = torch.tensor(process.ask("forward").values)
    except UnavailableError as error:
        pytest.skip(f"LXT: {error}")
    ours = peer(Ours, worker.load_model(job.model), Example(job.prompt_ids, job.response_ids), "attnlrp")
    assert close(logits, ours.forward())
    assert close(rows, ours.units(0, 7))
    assert close(rows.mean(1), ours.response())
