"""The peers: their numbers on a tiny reader, their processes, the table and the scaling run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner
from transformers import AutoTokenizer

from benchmarks.cells import Cells
from benchmarks.harness import Example, difference
from benchmarks.peers import client, environments, measure, run, worker
from benchmarks.peers.client import Answer, Job, PeerError, Worker
from benchmarks.peers.environments import UnavailableError
from benchmarks.peers.methods import PEERS, Peer

TOLERANCE = 1e-4  # float32


@pytest.fixture
def example(reader_folder: Path) -> Example:
    ids = run.example_ids(str(reader_folder), 18)
    return Example(tuple(ids[:11]), tuple(ids[11:]))


def test_the_example_is_the_same_every_time_and_of_whole_words(example: Example, reader_folder: Path) -> None:
    ids, tokenizer = (
        [*example.prompt_ids, *example.response_ids],
        AutoTokenizer.from_pretrained(reader_folder),
    )
    assert ids == run.example_ids(str(reader_folder), 18)
    assert len(set(ids)) == 18
    assert tokenizer(tokenizer.decode(ids))["input_ids"] == ids


@pytest.fixture
def job(reader_folder: Path, example: Example, tmp_path: Path) -> Job:
    return Job(str(reader_folder), example.prompt_ids, example.response_ids, tmp_path / "none", 60.0)


@pytest.fixture
def model(reader_folder: Path) -> Any:
    return worker.load_model(str(reader_folder))


def peer(name: str, model: Any, example: Example, composite: str = "paper") -> Any:
    return PEERS[name](model, example, composite=composite)


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return found.shape == expected.shape and difference(found.detach(), expected) < TOLERANCE


# Their numbers. LXT's peer on a model that LXT has not patched is Gradient x Input.


@pytest.mark.parametrize("name", ["ours", "lxt"])
def test_rows_and_means_are_those_of_the_papers_loop(name: str, model: Any, example: Example) -> None:
    rows = peer("paper-loop", model, example).units(0, 7)
    found = peer(name, model, example)
    assert rows.shape == (7, 11)
    assert close(found.units(2, 3), rows[2:5])
    assert close(found.prompt(), rows.mean(0))
    if "response" in found.whole:
        assert close(found.response(), rows.mean(1))


def test_our_plain_forward_is_unpatched(model: Any, example: Example) -> None:
    ours = peer("ours", model, example, "attnlrp")
    before = ours.units(1, 2)
    assert torch.equal(ours.forward(), peer("paper-loop", model, example).forward())
    assert torch.allclose(ours.units(1, 2), before)


def test_captums_gradient_is_that_of_the_log_probability(model: Any, example: Example) -> None:
    row = peer("captum-gradient", model, example).units(4, 1)[0]
    prefix = torch.tensor([[*example.prompt_ids, *example.response_ids[:4]]])
    embeddings = model.get_input_embeddings()(prefix).detach().requires_grad_()
    logs = model(inputs_embeds=embeddings).logits[0, -1].log_softmax(-1)
    (gradient,) = torch.autograd.grad(logs[example.response_ids[4]], embeddings)
    assert close(row, (gradient * embeddings.detach())[0, :11].sum(-1))


@torch.no_grad()
def test_captums_ablation_is_a_difference_of_log_probabilities(model: Any, example: Example) -> None:
    column = peer("captum-ablation", model, example).units(3, 1)[:, 0]
    ids = torch.tensor([[*example.prompt_ids, *example.response_ids]])
    changed = ids.clone()
    changed[0, 3] = 0
    whole, ablated = (
        model(one).logits[0, 10:-1].log_softmax(-1).gather(-1, ids[0, 11:, None])[:, 0]
        for one in (ids, changed)
    )
    assert close(column, whole - ablated)
    twice = Example((example.prompt_ids[0], *example.prompt_ids), example.response_ids)
    with pytest.raises(ValueError, match="twice"):  # two columns would be timed as one
        peer("captum-ablation", model, twice).units(0, 1)


def test_lxt_itself_agrees_with_ours(job: Job, model: Any, example: Example) -> None:
    real = Job(job.model, job.prompt_ids, job.response_ids, environments.default_folder(), 60.0)
    try:
        process = Worker("lxt", real)
    except UnavailableError as error:
        pytest.skip(f"LXT: {error}")
    logits = torch.tensor(process.ask("forward").values)
    rows = torch.tensor(process.ask("units", first=0, count=7).values)
    process.close()
    ours = peer("ours", model, example, "attnlrp")
    assert close(logits, ours.forward())
    assert close(rows, ours.units(0, 7))
    assert close(rows.mean(1), ours.response())


# Their processes and environments


def test_a_worker_answers_and_says_why_it_died(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Worker("ours", job)
    assert process.about["whole"] == ("response", "prompt")
    answer = process.ask("response")
    assert len(answer.values) == 7
    assert answer.seconds > 0
    assert answer.peak_bytes > 1e7
    with pytest.raises(PeerError, match="no_such"):
        process.ask("no_such_request")
    process._process.kill()
    with pytest.raises(PeerError, match="signal 9"):
        process.ask("response")
    process.close()
    monkeypatch.setattr(client, "STARTUP_SECONDS", 0.01)
    with pytest.raises(UnavailableError, match="took more than 0 s"):
        Worker("ours", job)


def test_an_environment_of_other_requirements_is_none(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(UnavailableError, match="environments lxt"):
            environments.python_of("lxt", tmp_path)
        (tmp_path / "lxt").mkdir(exist_ok=True)
        (tmp_path / "lxt" / environments.COMPLETE).write_text("torch==1\n")
    with pytest.raises(click.ClickException, match="no virtual environment"):
        environments.make("lxt", tmp_path)
    (tmp_path / "lxt" / environments.COMPLETE).write_text(environments.requirements("lxt").read_text())
    assert environments.python_of("lxt", tmp_path) == tmp_path / "lxt" / "bin" / "python"


def test_old_transformers_get_the_rotary_base_that_new_ones_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"rope_theta": 100000.0, "rope_type": "default"}
    config = SimpleNamespace(rope_theta=10000.0, rope_scaling={}, rope_parameters=parameters)
    monkeypatch.setattr(worker.importlib.metadata, "version", lambda _: "4.57.6")
    worker._old_rope(config)
    assert (config.rope_theta, config.rope_scaling) == (100000.0, None)


# The runs


class InProcess:
    """A worker without its process: the same peers and answers."""

    started = 0

    def __init__(self, name: str, job: Job, composite: str = "attnlrp") -> None:
        environments.python_of(name, job.environments)
        type(self).started += 1
        self.peer: Peer = worker.start(name, job.model, job.prompt_ids, job.response_ids, composite)
        self.about = worker.introduction(self.peer)

    def ask(self, do: str, **request: int) -> Answer:
        return Answer(**worker.answer(self.peer, do, **request))

    def close(self) -> None:
        pass


def command(folder: Path, tmp_path: Path, arguments: str, *peers: str) -> Any:
    given = [*arguments.split(), "--envs", str(tmp_path / "none"), "--reader", str(folder)]
    given += [part for name in peers for part in ("--peers", name)]
    return CliRunner().invoke(run.main, given, catch_exceptions=False)


def test_the_table_and_its_resumption(
    reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "Worker", InProcess)
    arguments = f"--prompt 12 --response 9 --rounds 2 --out {tmp_path / 'cells.json'}"
    result = command(reader_folder, tmp_path, f"{arguments} --json", *PEERS)
    rows = json.loads(result.stdout)["peers"]
    assert list(rows) == list(PEERS)
    for name in ("lxt", "inseq"):
        assert not rows[name]["available"]
        assert "environments " + name in rows[name]["reason"]
    loop = rows["paper-loop"]
    for error in ("response_error", "row_error", "logits_error"):
        assert loop[error] < TOLERANCE
    assert loop["response_extrapolated"]
    assert loop["units_timed"] == 2
    assert loop["matrix_seconds"] == pytest.approx(9 * loop["row_seconds"])
    assert loop["row_over_ours"] == pytest.approx(loop["row_seconds"] / rows["ours"]["row_seconds"])
    assert not rows["ours"]["matrix_extrapolated"]  # chunks of 8 and of 1: all 9 rows were timed
    assert set(rows["ours"]["peak_bytes"]) == {"forward", "response", "prompt", "matrix"}
    assert rows["captum-ablation"]["row_seconds"] is None
    assert "response_error" not in rows["captum-gradient"]

    started = InProcess.started
    again = command(reader_folder, tmp_path, f"{arguments} --json", *PEERS)
    assert InProcess.started == started
    assert json.loads(again.stdout) == json.loads(result.stdout)
    shown = command(reader_folder, tmp_path, arguments, *PEERS)
    assert "lxt: not measured: no environment" in shown.stdout
    assert "captum-gradient explains the response token's log-probability" in shown.stdout


def test_the_scaling_run(reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    opened = plt.get_fignums()
    monkeypatch.setattr(measure, "Worker", InProcess)
    image = tmp_path / "scaling.svg"
    arguments = f"--scaling --prompts 8,16,32,600 --responses 4,8 --prompt 9 --json --plot {image}"
    found = json.loads(command(reader_folder, tmp_path, arguments, "ours", "lxt").stdout)
    cells = {
        (cell["peer"], cell["quantity"], cell["prompt"]): cell for cell in found["prompt_sweep"]["cells"]
    }
    assert len(cells) == 2 * 3 * 4
    for prompt in (8, 16, 32):
        assert cells["ours", "response", prompt]["seconds"] > 0
        assert "no environment" in cells["lxt", "matrix", prompt]["skipped"]
    assert "window of 512" in cells["ours", "prompt", 600]["skipped"]
    points = {fit["quantity"]: fit["points"] for fit in found["prompt_sweep"]["exponents"]}
    assert points == {"response": 3, "prompt": 3, "matrix": 3}
    assert found["response_sweep"]["exponents"] == []  # two lengths are no fit
    assert image.stat().st_size > 10_000
    assert plt.get_fignums() == opened
    assert command(reader_folder, tmp_path, "--plot x.png").exit_code == 2  # it shows the scaling run


class Paced:
    """A worker that says how long it took: the square of the tokens over 1000 for R_response, else 0.1 s."""

    def __init__(self, name: str, job: Job) -> None:
        self.tokens = len(job.prompt_ids) + len(job.response_ids) - 1
        self.about = {"whole": ["response", "prompt"], "units": len(job.response_ids), "extra_units": 0}

    def ask(self, do: str, **_: int) -> Answer:
        if do == "prompt" and self.tokens > 300:
            raise PeerError("out of memory (it is a test)")
        return Answer(self.tokens**2 / 1000 if do == "response" else 0.1, 1, None)

    def close(self) -> None:
        pass


def test_what_would_take_too_long_is_skipped_with_its_reason(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "Worker", Paced)
    long = Job(job.model, tuple(range(2000)), (1, 2), job.environments, 60.0)
    sweep = measure.Sweep("prompt", (100, 200, 400, 800), 3)
    found = measure.measure_sweep(long, sweep, ["ours"], 4096, Cells(None, {}))
    by = {(cell["quantity"], cell["prompt"]): cell for cell in found["cells"]}
    assert by["response", 200]["seconds"] == pytest.approx(202**2 / 1000)
    assert by["response", 400]["skipped"] == "would take about 162 s, over 60 s"
    assert "smaller cell" in by["response", 800]["skipped"]
    assert by["prompt", 400]["skipped"].startswith("out of memory")
    assert "see prompt" in by["matrix", 400]["skipped"]
    assert by["matrix", 200]["seconds"] == pytest.approx(3 * 0.1)


def test_timed_rows_lie_in_the_middle_of_equal_parts() -> None:
    assert measure.spread({"units": 240}, 8, 5) == [(24, 8), (72, 8), (120, 8), (168, 8), (216, 8)]
    assert measure.spread({"units": 12}, 1, 3) == [(2, 1), (6, 1), (10, 1)]
    assert measure.spread({"units": 5}, 8, 2) == [(0, 5), (0, 5)]


def test_totals_count_what_rows_share_once() -> None:
    about = {"whole": ["prompt"], "units": 100, "extra_units": 0}
    units = [{"first": 10, "count": 1, "seconds": 2.0}, {"first": 60, "count": 1, "seconds": 4.0}]
    found = measure.totals(about, None, 5.0, units)
    assert found["prompt"] == (5.0, False)
    assert found["matrix"] == found["response"] == (2.0 + 300.0, True)
    ablation = {"whole": [], "units": 10, "extra_units": 1}
    assert measure.totals(ablation, None, None, units[:1])["matrix"].seconds == 11.0
