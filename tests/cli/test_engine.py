"""Where work is done: options of a cluster are refused without one, and by what cannot use it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lrp4rag.cli import main
from lrp4rag.cli.options import BUNDLED, NONE, DetectorChoice, ReaderChoice, open_detector
from lrp4rag.util import processes as processes_of

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = '{"question": "Q?", "passages": ["P."], "response": "R."}\n'


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "d.jsonl").write_text(EXAMPLE)
    return str(tmp_path / "d.jsonl")


def refused(*arguments: str) -> str:
    done: Result = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    return done.output


@pytest.mark.parametrize("option", [("--address", "auto"), ("--worker-cpus", "2")])
def test_options_of_a_cluster_need_one(data: str, tmp_path: Path, option: tuple[str, str]) -> None:
    assert "add --engine ray" in refused("extract", data, "--store", str(tmp_path / "s"), *option)
    assert "add --engine ray" in refused("analyse", data, *option)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("several", [("--engine", "ray"), ("--workers", "2")])
def test_what_shows_one_example_is_for_one_process(
    data: str, tmp_path: Path, several: tuple[str, str]
) -> None:
    page = ("--html", str(tmp_path / "p.html"))
    assert "are for one process" in refused("analyse", data, *several, *page)
    for command in ("analyse", "evaluate"):
        assert "for one process" in refused(command, data, *several, "--prevalence", "estimate")


def test_two_processes_say_what_one_says(
    processes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the file."""
    monkeypatch.setattr(processes_of, "START", processes.get_start_method())
    some = tmp_path / "some.jsonl"
    some.write_text("".join((EXAMPLES / "contradictions.jsonl").read_text().splitlines(keepends=True)[:4]))

    def judged(*options: str) -> tuple[list[tuple[str, float]], int]:
        done = CliRunner().invoke(main, ["analyse", str(some), "--reader", "none", "--json", *options])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [(line["id"], round(line["probability"], 5)) for line in lines], done.exit_code

    one = judged()
    assert len(one[0]) == 4
    assert judged("--workers", "2") == one


def test_a_reader_on_all_devices_is_one(data: str, tmp_path: Path) -> None:
    spread = ("extract", data, "--store", str(tmp_path / "s"), "--device", "auto")
    assert "one worker" in refused(*spread, "--workers", "2")
    assert "one worker" in refused(*spread, "--engine", "ray")


def test_without_ray_it_is_said_what_to_install(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    told = refused("extract", data, "--store", str(tmp_path / "s"), "--engine", "ray")
    assert "pip install 'lrp4rag[ray]'" in told


def test_what_is_not_there_is_said_before_a_cluster_is_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    missing = str(tmp_path / "none.jsonl")
    told = refused("extract", missing, "--store", str(tmp_path / "s"), "--engine", "ray")
    assert "none.jsonl: no such file" in told


def test_a_url_without_its_library_says_what_is_missing(data: str) -> None:
    told = refused("extract", data, "--store", "nope://bucket/store")
    assert "nope://bucket/store" in told
    assert "Traceback" not in told


def test_data_and_parts_are_not_both_judged_on_a_cluster(data: str) -> None:
    parts = ("--question", "Q?", "--passage", "P.", "--response", "R.")
    assert "not both" in refused("analyse", data, *parts, "--engine", "ray")


def test_a_worker_s_reader_is_on_its_only_gpu_and_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reader").mkdir()
    chosen = ReaderChoice("reader", "cuda:1", "auto")
    placed = chosen.for_workers()
    assert (placed.reader_name, placed.device) == (str(tmp_path / "reader"), "cuda")
    named = ReaderChoice("org/model", "cpu", "auto")
    assert named.for_workers() == named


def test_a_worker_without_a_reader_compares_texts() -> None:
    reader = ReaderChoice(NONE, "cpu", "float32")
    detector = open_detector(DetectorChoice(BUNDLED, None, None), reader)
    assert detector.model is not None
    assert detector.model.texts
    assert not detector.reader.has_model


def test_what_a_url_keeps_secret_is_in_no_message(tmp_path: Path) -> None:
    told = refused("analyse", "nope://me:hunter2@host/d.jsonl?signature=abc")
    assert "nope://host/d.jsonl" in told
    assert not {"hunter2", "abc"} & set(re.findall(r"\w+", told))


def test_a_url_is_refused_where_a_folder_must_be_here(data: str, tmp_path: Path) -> None:
    told = refused("train", data, "--store", "s3://me:hunter2@bucket/s", "--out", str(tmp_path / "d"))
    assert "s3://bucket/s is a URL" in " ".join(told.split())
