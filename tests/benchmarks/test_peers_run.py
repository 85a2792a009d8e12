"""The comparison's table and scaling run, on a tiny reader and without the other environments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.cells import Cells
from benchmarks.harness import Example
from benchmarks.peers import client, environments, run, scaling, table, totals, worker
from benchmarks.peers.captum_peer import CaptumAblation, CaptumGradient
from benchmarks.peers.client import Job, PeerError
from benchmarks.peers.ours import Ours
from benchmarks.peers.paper_loop import PaperLoop
from benchmarks.peers.worker import Peer
from lrp4rag.errors import InputError

CLASSES: dict[str, type[Peer]] = {
    "ours": Ours,
    "paper-loop": PaperLoop,
    "captum-gradient": CaptumGradient,
    "captum-ablation": CaptumAblation,
}
TOLERANCE = 1e-4  # float32


class InProcess:
    """A worker without its process: the same peers and answers, through JSON."""

    started = 0

    def __init__(self, peer: str, job: Job, composite: str = "attnlrp") -> None:
        environments.python_of(environments.PEERS[peer].environment, job.environments)
        type(self).started += 1
        task = {"composite": composite, "model": job.model}
        example = Example(job.prompt_ids, job.response_ids)
        self.peer = CLASSES[peer](worker.load_model(job.model), example, task)
        self.about = json.loads(json.dumps(worker._introduction(self.peer)))

    def ask(self, do: str, **request: Any) -> client.Answer:
        answer = json.loads(json.dumps(worker._answer(self.peer, {"do": do, **request})))
        return client.Answer(answer.get("seconds", 0.0), answer["peak_bytes"], answer.get("values"))

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> type[InProcess]:
    monkeypatch.setattr(table, "Worker", InProcess)
    monkeypatch.setattr(scaling, "Worker", InProcess)
    monkeypatch.setattr(InProcess, "started", 0)
    return InProcess


def command(folder: Path, tmp_path: Path, *arguments: str) -> Any:
    envs = ["--envs", str(tmp_path / "none"), "--reader", str(folder)]
    return CliRunner().invoke(run.main, [*arguments, *envs], catch_exceptions=False)


@pytest.mark.usefixtures("in_process")
def test_the_table_and_its_resumption(
    reader_folder: Path, hash_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LRP4RAG_CACHE", str(hash_cache))
    out = tmp_path / "cells.json"
    arguments = ["--prompt", "12", "--response", "9", "--rounds", "2", "--json", "--out", str(out)]
    chosen = ["ours", "paper-loop", "captum-gradient", "captum-ablation", "lxt", "inseq"]
    arguments += [part for name in chosen for part in ("--peers", name)]
    result = command(reader_folder, tmp_path, *arguments)
    rows = json.loads(result.stdout)["peers"]
    assert list(rows) == chosen
    for name in ("lxt", "inseq"):
        assert not rows[name]["available"]
        assert "environments " + name in rows[name]["reason"]
    loop = rows["paper-loop"]
    assert loop["response_error"] < TOLERANCE
    assert loop["row_error"] < TOLERANCE
    assert loop["logits_error"] < TOLERANCE
    assert loop["response_extrapolated"]
    assert loop["units_timed"] == 2
    assert loop["matrix_seconds"] == pytest.approx(9 * loop["row_seconds"])
    assert loop["row_over_ours"] == pytest.approx(loop["row_seconds"] / rows["ours"]["row_seconds"])
    assert not rows["ours"]["matrix_extrapolated"]  # chunks of 8 and of 1: all 9 rows were timed
    assert rows["captum-ablation"]["row_seconds"] is None
    assert "response_error" not in rows["captum-gradient"]

    started = InProcess.started
    again = command(reader_folder, tmp_path, *arguments)
    assert InProcess.started == started
    assert json.loads(again.stdout) == json.loads(result.stdout)
    shown = command(reader_folder, tmp_path, *[part for part in arguments if part != "--json"])
    assert "lxt: not measured: no environment" in shown.stdout
    assert "captum-gradient explains the response token's log-probability" in shown.stdout


@pytest.mark.usefixtures("in_process")
def test_the_scaling_run(
    reader_folder: Path, hash_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LRP4RAG_CACHE", str(hash_cache))
    arguments = ["--scaling", "--prompts", "8,16,32,600", "--responses", "4,8", "--prompt", "9"]
    image = tmp_path / "scaling.svg"
    peers = ["--peers", "ours", "--peers", "lxt"]
    result = command(reader_folder, tmp_path, *arguments, *peers, "--json", "--plot", str(image))
    found = json.loads(result.stdout)
    cells = found["prompt_sweep"]["cells"]
    ours = [cell for cell in cells if cell["peer"] == "ours" and cell["quantity"] == "response"]
    assert [cell["prompt"] for cell in ours] == [8, 16, 32, 600]
    assert all(cell["seconds"] > 0 for cell in ours[:3])
    assert "window of 512" in ours[3]["skipped"]
    assert all(
        "no environment" in cell["skipped"]
        for cell in cells
        if cell["peer"] == "lxt" and cell["prompt"] < 600
    )
    assert {fit["quantity"]: fit["points"] for fit in found["prompt_sweep"]["exponents"]} == {
        "response": 3,
        "prompt": 3,
        "matrix": 3,
    }
    assert found["response_sweep"]["exponents"] == []  # two lengths are no fit
    assert image.stat().st_size > 10_000


def test_plot_without_scaling_is_refused(reader_folder: Path, tmp_path: Path):
    result = command(reader_folder, tmp_path, "--plot", "x.png")
    assert result.exit_code == 2
    assert "--scaling" in result.stderr


class Paced:
    """A worker that takes as long as it says: seconds by request, from the number of tokens."""

    pace: Callable[[str, int], float]

    def __init__(self, peer: str, job: Job, composite: str = "attnlrp") -> None:
        self.tokens = len(job.prompt_ids) + len(job.response_ids) - 1
        self.about = {"whole": ["response", "prompt"], "axis": "row", "units": len(job.response_ids)}
        self.about |= {"chunk": 8, "extra_units": 0, "picks": 1}

    def ask(self, do: str, **_: Any) -> client.Answer:
        if do == "prompt" and self.tokens > 300:
            raise PeerError("out of memory (it is a test)")
        return client.Answer(type(self).pace(do, self.tokens), 1, None)

    def __enter__(self) -> Paced:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_what_would_take_too_long_is_skipped_and_said(job: Job, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scaling, "Worker", Paced)
    monkeypatch.setattr(Paced, "pace", lambda do, n: n**2 / 1000 if do == "response" else 0.1, raising=False)
    long = Job(job.model, tuple(range(2000)), (1, 2), job.environments, 60.0)
    sweep = scaling.Sweep("prompt", (100, 200, 400, 800), 3)
    found = scaling.measure_sweep(long, sweep, ["ours"], 4096, Cells(None, {}), lambda _: None)
    by = {(cell["quantity"], cell["prompt"]): cell for cell in found["cells"]}
    assert by["response", 200]["seconds"] == pytest.approx(202**2 / 1000)
    assert by["response", 400]["skipped"] == "would take about 162 s, over 60 s"
    assert "smaller cell" in by["response", 800]["skipped"]
    assert by["prompt", 400]["skipped"].startswith("out of memory")
    assert "see prompt" in by["matrix", 400]["skipped"]
    assert by["matrix", 200]["seconds"] == pytest.approx(3 * 0.1)


@pytest.mark.parametrize(
    ("units", "chunk", "calls", "firsts"),
    [
        (240, 8, 5, [24, 72, 120, 168, 216]),
        (12, 1, 3, [2, 6, 10]),
        (5, 8, 2, [0, 0]),
    ],
)
def test_timed_rows_lie_in_the_middle_of_equal_parts(units: int, chunk: int, calls: int, firsts: list[int]):
    assert totals.spread(units, chunk, calls) == firsts


def test_totals_count_what_rows_share_once():
    about = {"whole": ["prompt"], "units": 100, "extra_units": 0}
    units = [{"first": 10, "count": 1, "seconds": 2.0}, {"first": 60, "count": 1, "seconds": 4.0}]
    found = totals.totals(about, None, 5.0, units)
    assert found["prompt"] == totals.Total(5.0, False)
    assert found["matrix"] == found["response"] == totals.Total(2.0 + 300.0, True)
    ablation = {"whole": [], "units": 10, "extra_units": 1}
    assert totals.totals(ablation, None, None, units[:1])["matrix"].seconds == 11.0


def test_a_cell_is_measured_once(tmp_path: Path):
    path = tmp_path / "cells.json"
    Cells(path, {"model": "a", "threads": 2}).cell("key", lambda: {"value": 1})
    found = Cells(path, {"model": "a", "threads": 2})
    assert found.cell("key", lambda: {"value": 2}) == found["key"] == {"value": 1}
    with pytest.raises(InputError, match="measured with threads 2, not 1; name another output"):
        Cells(path, {"model": "a", "threads": 1})


def test_the_example_is_the_same_every_time_and_of_whole_words(reader_folder: Path):
    from transformers import AutoTokenizer

    ids = run.example_ids(str(reader_folder), 20)
    tokenizer = AutoTokenizer.from_pretrained(reader_folder)
    assert ids == run.example_ids(str(reader_folder), 20)
    assert len(set(ids)) == 20
    assert tokenizer(tokenizer.decode(ids))["input_ids"] == ids
