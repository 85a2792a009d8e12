"""A cluster of three machines leaves what one process leaves, whatever dies in between."""

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
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.data import json_line, load_examples
from lrp4rag.example import Example
from lrp4rag.guard.cluster import work
from lrp4rag.guard.cluster.analysis import Analysed, Analysing, analyse_all
from lrp4rag.guard.cluster.extraction import Extracting, ExtractionWorker
from lrp4rag.guard.cluster.groups import HeldGroups
from lrp4rag.guard.cluster.index import index
from lrp4rag.guard.cluster.session import joined
from lrp4rag.guard.cluster.work import Workers, spread
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.judge import Detector
from lrp4rag.reader import Reader
from lrp4rag.report.record import record
from lrp4rag.report.terminal import render_line
from lrp4rag.training.extract import extract
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning
from tests.cli.plain_detector import plain_detector
from tests.guard.cluster.local import cluster_of, machine
from tests.guard.cluster.working import Deadly, Failing, Opening, extracted
from tests.tiny import save_tiny_reader
from tests.training.jobs import PARTS, TOO_LONG, contents, open_reader, responses

PROMPTS = 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(1, 1, 1) as found:
        yield found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Responses whose prompts stand apart, and one that fails."""
    rows = responses(PROMPTS)
    path = tmp_path_factory.mktemp("data") / "d.jsonl"
    path.write_text("".join(json_line(one) + "\n" for one in [*rows[::2], TOO_LONG, *rows[1::2]]))
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
    opening: Opening, groups: int, act: Callable[[], None], also: Callable[[], bool] = lambda: True
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


def test_three_machines_leave_what_one_process_leaves(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    store = tmp_path / "s"
    done = extracted(str(data), str(store), opening, cluster.address)
    assert (done.computed, done.present, list(done.failures)) == (2 * PROMPTS, 0, [TOO_LONG.id])
    assert contents(store) == expected
    again = extracted(str(data), str(store), opening, cluster.address)
    assert (again.computed, again.present, list(again.failures)) == (0, 2 * PROMPTS, [TOO_LONG.id])
    assert contents(store) == expected


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    slow = replace(opening, pause=0.3)

    def kill() -> None:
        os.kill(begun(slow)[-1], signal.SIGKILL)

    killer = when(slow, 4, kill)
    done = extracted(str(data), str(tmp_path / "s"), slow, cluster.address)
    killer.join()
    assert len(set(begun(slow))) >= 3  # another process took its place
    assert (done.computed, list(done.failures)) == (2 * PROMPTS, [TOO_LONG.id])
    assert contents(tmp_path / "s") == expected


def test_a_machine_that_is_lost_loses_nothing(
    cluster: Any, data: Path, expected: dict[str, bytes], opening: Opening, tmp_path: Path
) -> None:
    slow = replace(opening, pause=0.3)
    extra = cluster.add_node(num_cpus=1, **machine())
    raylet = extra.all_processes["raylet"][0].process.pid
    lost: set[int] = set()

    def at_work() -> bool:
        there = {one.pid for one in psutil.Process(raylet).children(recursive=True)}
        lost.update(there & set(begun(slow)))
        return bool(lost)

    killer = when(slow, 4, lambda: cluster.remove_node(extra, allow_graceful=False), at_work)
    done = extracted(str(data), str(tmp_path / "s"), slow, cluster.address, count=4)
    killer.join()
    assert lost  # a worker that had begun
    assert (done.computed + done.present, list(done.failures)) == (2 * PROMPTS, [TOO_LONG.id])
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
    assert not any(psutil.pid_exists(one) for one in workers)


@pytest.mark.slow
def test_what_kills_every_worker_ends_the_run(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "ATTEMPTS", 2)
    with (
        joined(cluster.address),
        pytest.raises(LRP4RAGError, match=r"died 2 times at the same responses, from 'bridge-2-0'"),
    ):
        list(spread(HeldGroups.of(responses(4, 1)), Deadly, "bridge-2-0", Workers(1)))


def test_bad_rows_are_named(cluster: Any, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(data.read_text() + '{"question": "Q?", "passages": []}\n')
    with joined(cluster.address):
        with pytest.raises(InputError, match=rf"{path}, line {2 * PROMPTS + 2}, field 'passages'"):
            index([str(path)])
        path.write_text(data.read_text() + data.read_text().splitlines()[0] + "\n")
        with pytest.raises(InputError, match=rf"line {2 * PROMPTS + 2}.*'bridge-0-0' \(first on line 1\)"):
            index([str(path)])
        other = path.with_name("other.jsonl")
        other.write_text(data.read_text().splitlines()[1] + "\n")
        with pytest.raises(InputError, match=rf"{other}, line 1.*first on {data}, line 2"):
            index([str(data), str(other)])


def test_a_worker_that_fits_no_machine_is_refused_or_waited_for(cluster: Any) -> None:
    with joined(cluster.address):
        assert Workers().here() == 3
        for wants in (Workers(cpus=2), Workers(memory=10**15)):
            with pytest.raises(InputError, match="no machine has room for a worker"):
                wants.here()
        with pytest.warns(LRP4RAGWarning, match="waiting for one"):
            assert Workers(cpus=2, waits=True).here() == 1


def test_what_a_worker_meets_is_told(cluster: Any) -> None:
    with (
        joined(cluster.address),
        pytest.raises(LRP4RAGError, match=r"a worker failed: PermissionError: not for you"),
    ):
        list(spread(HeldGroups.of(responses(2, 1)), Failing, "not for you", Workers(1)))


def test_a_machine_with_another_reader_is_told(tiny_reader: Reader, opening: Opening, tmp_path: Path) -> None:
    other = save_tiny_reader(tmp_path / "other", seed=1)
    store = extract(responses(1), tiny_reader, tmp_path / "s", parts=PARTS).store
    plan = Extracting(replace(opening, folder=str(other)), store, PARTS, None, 1)
    with pytest.raises(InputError, match="digest"):
        ExtractionWorker(plan)


@pytest.mark.slow
def test_commands_in_a_folder_that_is_not_the_workers(
    cluster: Any,
    data: Path,
    reader_folder: Path,
    tiny_reader: Reader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = responses(4)
    Path("golden.jsonl").write_text("".join(json_line(one) + "\n" for one in rows))
    Path("reader").symlink_to(reader_folder)
    plain_detector(tiny_reader).save("detector")
    ray = ("--engine", "ray", "--workers", "1", "--address", cluster.address, "--store")

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(main, [*arguments, "--reader", "reader"])
        assert done.exit_code == 0, done.output
        return done

    run("extract", "golden.jsonl", "--store", "here")
    run("extract", "golden.jsonl", *ray, "there")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    judge = ("--detector", "detector", "--json", "golden.jsonl")
    one = [json.loads(line) for line in run("analyse", *judge).stdout.splitlines()]
    many = [json.loads(line) for line in run("analyse", *judge, *ray, "kept").stdout.splitlines()]
    assert [{**row, "seconds": {}} for row in many] == [{**row, "seconds": {}} for row in one]
    assert len(list((tmp_path / "kept" / "verdicts").rglob("*.json"))) == 4
    evaluate = ("evaluate", *judge, "--bootstrap", "20")
    local, spread_out = (json.loads(run(*evaluate, *where).stdout) for where in ((), (*ray, "scores")))
    assert spread_out == local


@pytest.mark.slow
def test_analyses_are_those_of_one_process_in_its_order(
    cluster: Any, data: Path, opening: Opening, tmp_path: Path
) -> None:
    examples = load_examples(data)
    kept = tmp_path / "kept"
    plan = Analysing(_Pair(opening), Policy(), None, "error", None, 16, 1, kept)
    one = list(analyse_here(plan, examples))
    with joined(cluster.address):
        found = list(analyse_all(index([str(data)]), plan, Workers(2)))
        files = contents(kept)
        again = list(analyse_all(HeldGroups.of(examples), plan, Workers(2)))
    assert [row.id for row in found] == [example.id for example in examples]
    assert list(map(without_seconds, found)) == list(map(without_seconds, one))
    assert list(map(without_seconds, again)) == list(map(without_seconds, one))
    failed = {name for name, content in contents(kept).items() if content != files[name]}
    assert len(files) == PROMPTS + 1
    assert len(failed) <= 1  # what failed is tried again


def analyse_here(plan: Analysing, examples: list[Example]) -> Iterator[Analysed]:
    """In this process, as the command does it: prompt by prompt, and told in the order of DATA."""
    detector, reader = plan.open()
    assert detector is not None
    for example, found in zip(examples, Detector(detector, reader).judge_each(examples), strict=True):
        if isinstance(found, LRP4RAGError):
            yield Analysed(example.id, None, "", str(found), found.exit_code)
        else:
            told = record(found, decision=assess(Policy(), example, found))
            yield Analysed(example.id, json.loads(json.dumps(told)), render_line(found).plain, "", 0)


def without_seconds(one: Analysed) -> Analysed:
    return one if one.record is None else replace(one, record={**one.record, "seconds": {}})


class _Pair:
    """The tiny reader and a detector for it."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def __call__(self) -> tuple[Any, Reader]:
        reader = open_reader(self._opening.folder, self._opening.cache)
        return plain_detector(reader), reader
