"""Several processes fill a store as one would; they end with their parent, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from lrp4rag.reader import Reader
from lrp4rag.training.extract import Extraction, extract
from lrp4rag.util import processes as module
from lrp4rag.util.errors import LRP4RAGError
from tests.training.jobs import (
    INTERRUPTED,
    PARTS,
    TOO_LONG,
    Load,
    contents,
    responses,
    run_extraction,
    whole_files,
)

Loading = Callable[[str], Load]


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    folder = tmp_path / "pids"
    folder.mkdir()
    return folder


@pytest.fixture
def loading(reader_folder: Path, hash_cache: Path, pids: Path) -> Loading:
    return lambda fate="work": Load(str(reader_folder), str(hash_cache), str(pids), fate)


@pytest.fixture
def forked(processes: multiprocessing.context.ForkServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without seconds of imports; as many threads each on every machine."""
    assert module.START == "spawn"  # CUDA cannot be used in forked ones
    monkeypatch.setattr(module, "START", processes.get_start_method())
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def worker_ids(pids: Path) -> list[int]:
    return [int(content) for path in pids.glob("*.pid") if (content := path.read_text())]


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


def all_gone(pids: Path) -> bool:
    return not any(psutil.pid_exists(process) for process in worker_ids(pids))


def run(reader: Reader, store: Path, load: Load, *, workers: int = 2, prompts: int = 4) -> Extraction:
    rows = [*responses(prompts), TOO_LONG]
    return extract(rows, reader, store, parts=PARTS, workers=workers, load=load)


@pytest.mark.usefixtures("forked")
def test_two_workers_leave_what_one_process_leaves(
    loading: Loading, tiny_reader: Reader, pids: Path, tmp_path: Path
) -> None:
    """To the last bit, failures included. (Workers that are spawned: tests/cli/test_store.py.)"""
    one = run(tiny_reader, tmp_path / "one", loading(), workers=1)
    assert worker_ids(pids) == []
    two = run(tiny_reader, tmp_path / "two", loading())
    assert len(worker_ids(pids)) == 2
    assert (two.computed, two.present, two.failures) == (one.computed, one.present, one.failures)
    assert set(two.failures) == {"too-long"}
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    wait_until(lambda: all_gone(pids))


@pytest.mark.usefixtures("forked")
def test_no_worker_is_started_where_nothing_is_to_do(
    loading: Loading, tiny_reader: Reader, pids: Path, tmp_path: Path
) -> None:
    rows = responses(3)
    extract(rows, tiny_reader, tmp_path / "s", parts=PARTS)
    done = extract(rows, tiny_reader, tmp_path / "s", parts=PARTS, workers=2, load=loading())
    assert (done.computed, done.present) == (0, 6)
    # One prompt is one worker's work, and that is done here.
    extract([*rows, *responses(4)[-2:]], tiny_reader, tmp_path / "s", parts=PARTS, workers=2, load=loading())
    assert worker_ids(pids) == []


@pytest.mark.usefixtures("forked")
def test_a_worker_that_dies_is_reported_and_the_run_can_resume(
    loading: Loading, tiny_reader: Reader, pids: Path, tmp_path: Path
) -> None:
    with pytest.raises(LRP4RAGError, match=r"a worker process died.*run it again"):
        run(tiny_reader, tmp_path / "s", loading("die"))
    wait_until(lambda: all_gone(pids))
    assert run(tiny_reader, tmp_path / "s", loading(), workers=1).computed == 8


@pytest.mark.usefixtures("forked")
def test_workers_end_when_what_they_work_for_ends_early(
    loading: Loading, tiny_reader: Reader, pids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in this process while workers are busy for minutes."""

    def fail(_: object) -> None:
        wait_until(lambda: len(worker_ids(pids)) == 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "as_completed", fail)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(tiny_reader, tmp_path / "s", loading("sleep"))
    assert time.monotonic() - started < 300  # and not the 600 that each sleeps
    wait_until(lambda: all_gone(pids))


@pytest.fixture
def start(processes: multiprocessing.context.ForkServerContext, loading: Loading):
    """Start an extraction in a process of its own."""

    def begin(store: Path, workers: int, prompts: int, fate: str = "work") -> multiprocessing.Process:
        process = processes.Process(target=run_extraction, args=(loading(fate), str(store), prompts, workers))
        process.start()
        return process

    return begin


def test_an_interrupt_ends_workers_at_once(start, pids: Path, tmp_path: Path) -> None:
    """As in a terminal, which tells them all; workers leave it to their parent."""
    process = start(tmp_path / "s", workers=2, prompts=4, fate="sleep")
    wait_until(lambda: len(worker_ids(pids)) == 2)
    time.sleep(0.2)
    for worker in worker_ids(pids):
        os.kill(worker, signal.SIGINT)
    time.sleep(0.2)
    assert process.is_alive()
    os.kill(process.pid, signal.SIGINT)
    process.join(300)
    assert process.exitcode == INTERRUPTED
    wait_until(lambda: all_gone(pids))


# Killed at any moment.

PROMPTS = 6


@pytest.mark.parametrize(("workers", "kills"), [(1, 4), (2, 3)])
def test_killed_runs_end_in_the_same_bytes(
    workers: int, kills: int, start, loading: Loading, tiny_reader: Reader, pids: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(tiny_reader, whole, loading(), workers=1, prompts=PROMPTS)
    expected = contents(whole)
    # The manifest, the examples, the log of failures, and every part of two responses to each prompt.
    assert len(expected) == 3 + len(PARTS) * 2 * PROMPTS

    def files() -> int:
        return len(list(killed.glob("*/*.safetensors")))

    chance, interrupted = random.Random(workers), 0
    for count in (0, 1, *sorted(chance.sample(range(2, len(expected) - 20), kills - 2))):
        doomed = start(killed, workers, PROMPTS)
        wait_until(lambda count=count, doomed=doomed: files() >= count or not doomed.is_alive())
        time.sleep(chance.uniform(0, 0.02))
        doomed.kill()
        doomed.join()
        wait_until(lambda: all_gone(pids))  # nothing is left to write
        interrupted += files() < len(expected) - 3
        # Whatever has its name is whole.
        assert (whole_files(killed) if killed.exists() else {}).items() <= expected.items()
    assert interrupted >= kills - 1
    last = start(killed, workers, PROMPTS)
    last.join()
    assert last.exitcode == 0
    assert contents(killed) == expected
