"""A cluster of machines leaves what one process leaves, in its order, whatever dies in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.data import json_line, load_examples
from lrp4rag.guard.cluster import workers as module
from lrp4rag.guard.cluster.extraction import ExtractionWorker, Plan
from lrp4rag.guard.cluster.workers import Workers, joined, map_groups
from lrp4rag.reader import Reader
from lrp4rag.training.extract import extract, groups_of
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.cli.plain_detector import plain_detector
from tests.guard.cluster.local import cluster_of, machine
from tests.guard.cluster.working import Failing, Opening, extracted
from tests.tiny import save_tiny_reader
from tests.training.jobs import PARTS, TOO_LONG, contents, responses

PROMPTS = 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(1, 1) as started:
        yield started


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses whose prompts stand apart, and one that fails."""
    rows = responses(PROMPTS)
    path = tmp_path_factory.mktemp("data") / "d.jsonl"
    path.write_text("".join(json_line(row) + "\n" for row in [*rows[::2], TOO_LONG, *rows[1::2]]))
    return path


@pytest.fixture(scope="module")
def expected(data: Path, tiny_reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("one") / "s"
    extract(load_examples(data), tiny_reader, folder, parts=PARTS)
    return contents(folder)


@pytest.fixture
def opening(reader_folder: Path, hash_cache: Path, tmp_path: Path) -> Opening:
    (tmp_path / "begun").mkdir()
    return Opening(str(reader_folder), str(hash_cache), str(tmp_path / "begun"))


def begun(opening: Opening) -> list[int]:
    """The processes that began a group, once for each."""
    return [int(name.partition("-")[0]) for name in sorted(os.listdir(opening.begun))]


def when(
    opening: Opening, groups: int, act: Callable[[], Any], also: Callable[[], bool] = lambda: True
) -> threading.Thread:
    """Act once so many groups were begun, and what `also` asks for holds."""

    def watch() -> None:
        end = time.monotonic() + 300
        while not (len(begun(opening)) >= groups and also()) and time.monotonic() < end:
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_machines_leave_what_one_process_leaves(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    store = tmp_path / "s"
    done = extracted(str(data), str(store), opening, cluster.address)
    assert (done.computed, done.present, list(done.failures)) == (2 * PROMPTS, 0, [TOO_LONG.id])
    assert contents(store) == expected
    again = extracted(str(data), str(store), opening, cluster.address)
    assert (again.computed, again.present, list(again.failures)) == (0, 2 * PROMPTS, [TOO_LONG.id])
    assert contents(store) == expected


def test_a_machine_that_is_lost_loses_nothing(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    slow = replace(opening, pause=0.3)
    extra = cluster.add_node(num_cpus=1, **machine())
    raylet = extra.all_processes["raylet"][0].process.pid
    lost: set[int] = set()

    def at_work() -> bool:
        there = {process.pid for process in psutil.Process(raylet).children(recursive=True)}
        lost.update(there & set(begun(slow)))
        return bool(lost)

    killer = when(slow, 4, lambda: cluster.remove_node(extra, allow_graceful=False), at_work)
    done = extracted(str(data), str(tmp_path / "s"), slow, cluster.address, count=3)
    killer.join()
    assert lost  # a worker that had begun
    assert (done.computed, done.present, list(done.failures)) == (2 * PROMPTS, 0, [TOO_LONG.id])
    assert contents(tmp_path / "s") == expected


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    slow = replace(opening, pause=0.3)
    killer = when(slow, 4, lambda: os.kill(begun(slow)[-1], signal.SIGKILL))
    done = extracted(str(data), str(tmp_path / "s"), slow, cluster.address)
    killer.join()
    assert len(set(begun(slow))) >= 3  # another process took its place
    assert (done.computed, done.present, list(done.failures)) == (2 * PROMPTS, 0, [TOO_LONG.id])
    assert contents(tmp_path / "s") == expected


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    slow, store = replace(opening, pause=0.3), str(tmp_path / "s")
    arguments = [str(data), store, cluster.address, slow.folder, slow.cache, slow.begun, str(slow.pause)]
    driver = subprocess.Popen([sys.executable, "-m", "tests.guard.cluster.working", *arguments])
    when(slow, 5, driver.kill).join()
    driver.wait()
    workers = set(begun(slow))
    done = extracted(str(data), store, opening, cluster.address)
    assert done.computed + done.present == 2 * PROMPTS
    assert done.present > 0
    assert contents(tmp_path / "s") == expected
    assert not any(psutil.pid_exists(worker) for worker in workers)


@pytest.mark.parametrize(
    ("worker", "reason"),
    [
        (partial(Failing, "bridge-2-0"), r"PermissionError: not for you"),
        pytest.param(partial(Failing, "bridge-2-0", dies=True), "did memory run out", marks=pytest.mark.slow),
    ],
)
def test_a_worker_that_fails_ends_the_run(
    cluster: Any, worker: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESTARTS", 1)
    rows = responses(4, 1)
    with joined(cluster.address), pytest.raises(LRP4RAGError, match=reason):
        list(map_groups(groups_of(rows, rows), worker, Workers(1)))


@pytest.mark.parametrize("workers", [Workers(cpus=2), Workers(memory=10**15)])
def test_a_worker_that_fits_no_machine_is_refused(cluster: Any, workers: Workers) -> None:
    rows = responses(1)
    with joined(cluster.address), pytest.raises(InputError, match="no machine"):
        list(map_groups(groups_of(rows, rows), partial(Failing, ""), workers))


def test_a_machine_with_another_reader_is_refused(
    tiny_reader: Reader, opening: Opening, tmp_path: Path
) -> None:
    other = save_tiny_reader(tmp_path / "other", seed=1)
    store = extract(responses(1), tiny_reader, tmp_path / "s", parts=PARTS).store
    plan = Plan(replace(opening, folder=str(other)), "attnlrp", "error", PARTS)
    with pytest.raises(InputError, match="digest"):
        ExtractionWorker(plan, store)


@pytest.mark.slow
def test_commands_print_what_they_print_on_one_machine(
    cluster: Any, reader_folder: Path, tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers run in other folders
    rows = responses(4)
    golden = [*rows[::2], TOO_LONG, *rows[1::2]]
    Path("golden.jsonl").write_text("".join(json_line(row) + "\n" for row in golden))
    Path("reader").symlink_to(reader_folder)
    plain_detector(tiny_reader).save("detector")
    ray = ("--engine", "ray", "--workers", "1", "--address", cluster.address)

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(main, [*arguments, "--reader", "reader"])
        assert done.exit_code in (0, 2), done.output
        return done

    def analysed(*where: str) -> list[Any]:
        done = run("analyse", "--detector", "detector", "--json", "golden.jsonl", *where)
        assert done.exit_code == 2
        assert f"example '{TOO_LONG.id}'" in done.stderr
        return [{**json.loads(line), "seconds": {}} for line in done.stdout.splitlines()]

    run("extract", "golden.jsonl", "--store", "here", "--allow-failures", "1")
    run("extract", "golden.jsonl", *ray, "--store", "there", "--allow-failures", "1")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    one = analysed()
    assert [row["id"] for row in one] == [row.id for row in golden if row is not TOO_LONG]
    assert analysed(*ray) == one
    Path("golden.jsonl").write_text("".join(json_line(row) + "\n" for row in rows))
    evaluate = ("evaluate", "golden.jsonl", "--detector", "detector", "--json", "--bootstrap", "20")
    local, spread = (json.loads(run(*evaluate, *where).stdout) for where in ((), ray))
    assert spread == local
