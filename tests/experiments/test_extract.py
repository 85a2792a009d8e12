"""Extraction: nothing twice, failures passed over, and the same bytes however often it is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments import extract as module
from lrp4rag.experiments.extract import extract
from lrp4rag.generator import Reader, load_reader
from lrp4rag.lrp import Relevance, attribute, relevance_mode
from tests.tiny import bridge_example

TOO_LONG = bridge_example(passages=["word " * 600], id="too-long")


def examples_of(count: int) -> list[Example]:
    return [bridge_example(k) for k in range(count)]


@pytest.fixture
def attributed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The responses whose relevance is computed, in their order."""
    calls: list[str] = []

    def counted(reader: Reader, encoded: object, **options: object) -> Relevance:
        calls.append(encoded.response)
        return attribute(reader, encoded, **options)

    monkeypatch.setattr(module, "attribute", counted)
    return calls


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("composite", ["paper", "attnlrp", "cp_lrp"])
def test_what_is_stored_is_the_relevance(composite: str, tiny_reader: Reader, tmp_path: Path) -> None:
    examples = examples_of(3)
    done = extract(examples, tiny_reader, tmp_path, composite=composite)
    assert (done.computed, done.present, done.failures) == (3, 0, {})
    for example in examples:
        stored = done.store.read(example)
        expected = attribute(tiny_reader, tiny_reader.encode(example), composite=composite)
        assert stored.encoded == expected.encoded
        assert stored.composite == composite
        np.testing.assert_array_equal(stored.response, expected.response)
        np.testing.assert_array_equal(stored.logits, expected.logits)


def test_what_is_there_is_not_computed_again(
    tiny_reader: Reader, tmp_path: Path, attributed: list[str]
) -> None:
    first = extract(examples_of(3), tiny_reader, tmp_path)
    before = contents(tmp_path)
    again = extract(examples_of(3), tiny_reader, tmp_path)
    assert (first.computed, first.present) == (3, 0)
    assert (again.computed, again.present) == (0, 3)
    assert len(attributed) == 3
    assert contents(tmp_path) == before
    more = extract(examples_of(5), tiny_reader, tmp_path)
    assert (more.computed, more.present) == (2, 3)
    assert attributed[3:] == [bridge_example(k).response for k in (3, 4)]


def test_a_removed_row_is_computed_again(tiny_reader: Reader, tmp_path: Path, attributed: list[str]) -> None:
    store = extract(examples_of(3), tiny_reader, tmp_path).store
    before = contents(tmp_path)
    store.path(bridge_example(1)).unlink()
    extract(examples_of(3), tiny_reader, tmp_path)
    assert attributed[3:] == [bridge_example(1).response]
    assert contents(tmp_path) == before


def test_without_examples(tiny_reader: Reader, tmp_path: Path) -> None:
    done = extract([], tiny_reader, tmp_path)
    assert (done.computed, done.present, done.failures) == (0, 0, {})


@pytest.mark.parametrize(
    "bad", [TOO_LONG, bridge_example(response=None, id="no-response")], ids=lambda example: example.id
)
def test_a_row_that_fails_is_logged_and_passed_over(
    bad: Example, tiny_reader: Reader, tmp_path: Path
) -> None:
    done = extract([bridge_example(0), bad, bridge_example(1)], tiny_reader, tmp_path)
    assert done.computed == 2
    assert set(done.failures) == {bad.id}
    assert bridge_example(1) in done.store
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": bad.id, "error": done.failures[bad.id]}


def test_memory_that_runs_out_on_one_row_is_logged(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_on_one(reader: Reader, encoded: object, **options: object) -> Relevance:
        if "1901" in encoded.response:
            raise torch.OutOfMemoryError("out of memory")
        return attribute(reader, encoded, **options)

    monkeypatch.setattr(module, "attribute", fail_on_one)
    done = extract(examples_of(3), tiny_reader, tmp_path)
    assert (done.computed, done.failures) == (2, {"bridge-1": "out of memory"})


def test_a_failure_that_is_over_leaves_the_log(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Relevance:
        raise RuntimeError("for now")

    with monkeypatch.context() as patch:
        patch.setattr(module, "attribute", fail)
        assert set(extract(examples_of(2), tiny_reader, tmp_path).failures) == {"bridge-0", "bridge-1"}
    assert (tmp_path / "failures.jsonl").is_file()
    assert extract(examples_of(2), tiny_reader, tmp_path).computed == 2
    assert not (tmp_path / "failures.jsonl").exists()


def test_a_full_disk_is_not_a_failure_of_a_row(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would repeat for all rows: the run ends, and leaves nothing half written."""

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    extract(examples_of(1), tiny_reader, tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        extract(examples_of(3), tiny_reader, tmp_path)
    assert contents(tmp_path) == before


def test_truncated_rows_are_stored_where_asked(tiny_reader: Reader, tmp_path: Path) -> None:
    done = extract([TOO_LONG], tiny_reader, tmp_path, truncation="passages")
    assert done.store.read(TOO_LONG).encoded.dropped > 0
    with pytest.raises(InputError, match=r"truncation passages, not error"):
        extract([TOO_LONG], tiny_reader, tmp_path)


def test_another_composite_needs_another_folder(tiny_reader: Reader, tmp_path: Path) -> None:
    extract(examples_of(1), tiny_reader, tmp_path)
    with pytest.raises(InputError, match=r"composite attnlrp, not paper"):
        extract(examples_of(1), tiny_reader, tmp_path, composite="paper")
    with pytest.raises(InputError, match="unknown composite"):
        extract(examples_of(1), tiny_reader, tmp_path / "new", composite="lrp")
    assert not (tmp_path / "new").exists()


def test_the_model_is_restored(tiny_reader: Reader, tmp_path: Path) -> None:
    extract([bridge_example(), TOO_LONG], tiny_reader, tmp_path)
    with relevance_mode(tiny_reader.model):  # it can be entered, so it was left
        pass


# Killed at any moment.

ROWS = 30


def run_extraction(reader_folder: str, store: str, cache: str) -> None:
    """In a process of its own, to be killed."""
    os.environ["LRP4RAG_CACHE"] = cache
    torch.set_num_threads(1)
    reader = load_reader(reader_folder, device="cpu")
    extract([*examples_of(ROWS), TOO_LONG], reader, store)


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    """Processes forked from one that has imported everything: starting one takes no seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "transformers.models.llama.modeling_llama"])
    return context


def rows_in(store: Path) -> list[Path]:
    return list(store.glob("rows/*.safetensors"))


def kill_after(process: multiprocessing.Process, store: Path, rows: int, seconds: float) -> None:
    """SIGKILL, some time after so many rows are there."""
    while process.is_alive() and len(rows_in(store)) < rows:
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    process.join()


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_runs_end_in_the_same_bytes(seed: int, processes, reader_folder: Path, tmp_path: Path) -> None:
    def process(store: Path) -> multiprocessing.Process:
        arguments = (str(reader_folder), str(store), str(tmp_path / "cache"))
        started = processes.Process(target=run_extraction, args=arguments)
        started.start()
        return started

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = process(whole)
    undisturbed.join()
    assert undisturbed.exitcode == 0
    expected = contents(whole)
    assert len(expected) == ROWS + 2  # and the manifest and the log of failures
    assert json.loads(expected["failures.jsonl"])["id"] == "too-long"

    chance, interrupted = random.Random(seed), 0
    for rows in (0, 1, *sorted(chance.sample(range(2, ROWS - 10), 3))):
        doomed = process(killed)
        kill_after(doomed, killed, rows, chance.uniform(0, 0.01))
        found = contents(killed) if killed.exists() else {}
        interrupted += doomed.exitcode == -9 and len(rows_in(killed)) < ROWS
        # Whatever has its name is whole.
        assert {
            name: content for name, content in found.items() if not name.endswith(".tmp")
        }.items() <= expected.items()
    assert interrupted >= 4
    last = process(killed)
    last.join()
    assert last.exitcode == 0
    assert contents(killed) == expected
