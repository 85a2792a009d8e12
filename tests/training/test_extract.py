"""Extraction: nothing twice, failures passed over, parts added later, prompts shared."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag.example import Example
from lrp4rag.lrp import attribute, relevance_mode
from lrp4rag.lrp.prefix import Prefix
from lrp4rag.reader import Reader
from lrp4rag.reader.encoding import Encoded
from lrp4rag.training import extract as module
from lrp4rag.training import extractor as extractors
from lrp4rag.training.extract import extract
from lrp4rag.training.extractor import FILLERS, Extractor, Filler
from lrp4rag.training.store import Store
from lrp4rag.util.errors import InputError
from tests.hostile.damage import flipped, put
from tests.tiny import bridge_example
from tests.training.jobs import PARTS, TOO_LONG, contents, responses

UNREADABLE = "Which one?"
Filled = list[tuple[str, str]]
Failing = Callable[[Example, BaseException], None]


def examples_of(count: int) -> list[Example]:
    return [bridge_example(k) for k in range(count)]


@pytest.fixture(scope="module")
def extracted(tiny_reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every part of two responses to each of two prompts."""
    folder = tmp_path_factory.mktemp("extracted") / "s"
    done = extract(responses(2), tiny_reader, folder, parts=PARTS)
    assert (done.computed, done.present, done.failures) == (4, 0, {})
    return folder


@pytest.fixture
def copy(extracted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(extracted, tmp_path / "copy"))


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> Filled:
    """The parts that are computed, and of which example, in their order."""
    calls: Filled = []

    def noting(part: str) -> Filler:
        def fill(extractor: Extractor, encoded: dict, other: Example | None) -> None:
            calls.extend((part, example.id) for example in encoded)
            fillers[part](extractor, encoded, other)

        return fill

    fillers = dict(FILLERS)
    for part in fillers:
        monkeypatch.setitem(FILLERS, part, noting(part))
    fill_matrix = extractors._fill_matrix

    def noted(extractor: Extractor, part: str, encoded: dict) -> None:
        calls.extend((part, example.id) for example in encoded)
        fill_matrix(extractor, part, encoded)

    monkeypatch.setattr(extractors, "_fill_matrix", noted)
    return calls


@pytest.fixture
def prompts(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prompts that are read, in their order; one with `UNREADABLE` in it fails."""
    read, init = list[str](), Prefix.__init__

    def noted(self: Prefix, flow: object, ids: tuple[int, ...], *rest: object, **options: object) -> None:
        read.append(tiny_reader.tokenizer.decode(ids))
        if UNREADABLE in read[-1]:
            raise RuntimeError("not enough memory")
        init(self, flow, ids, *rest, **options)

    monkeypatch.setattr(Prefix, "__init__", noted)
    return read


@pytest.fixture
def failing(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Let the passes over an example's response fail."""

    def install(example: Example, error: BaseException) -> None:
        states, ids = Prefix.states, tiny_reader.encode(example).response_ids

        def limited(self: Prefix, response: tuple[int, ...], *rest: object, **options: object) -> object:
            if response == ids:
                raise error
            return states(self, response, *rest, **options)

        monkeypatch.setattr(Prefix, "states", limited)

    return install


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# What is stored.


@pytest.mark.parametrize("composite", ["paper", "attnlrp", "cp_lrp"])
def test_relevance_and_prompt_of_every_composite(composite: str, tiny_reader: Reader, tmp_path: Path) -> None:
    rows = [bridge_example(0), bridge_example(1, response="It was opened in 1900.  Nobody knows more!")]
    done = extract(rows, tiny_reader, tmp_path, composite=composite, parts=["relevance", "prompt"])
    assert (done.computed, done.present, done.failures) == (2, 0, {})
    for row in rows:
        stored = done.store.read(row)
        expected = attribute(tiny_reader, tiny_reader.encode(row), composite=composite, prompt=True)
        assert stored.encoded == expected.encoded
        assert (stored.composite, stored.target) == (composite, "response")
        close(stored.response, expected.response)
        close(stored.logits, expected.logits)
        close(stored.prompt, expected.prompt, 1e-3)  # kept in float16


def test_every_part(extracted: Path, tiny_reader: Reader) -> None:
    store = Store.existing(extracted)
    assert store.parts() == list(PARTS)
    assert store.examples() == responses(2)
    for example in responses(2):
        expected = attribute(
            tiny_reader, tiny_reader.encode(example), segments=True, prompt=True, resampled=(6, 4)
        )
        stored = store.read(example)
        for name in ("by_segment", "prompt", "resampled"):  # these are kept in float16
            close(getattr(stored, name), getattr(expected, name), 1e-3)


def test_responses_that_share_a_prompt_equal_those_that_do_not(tiny_reader: Reader, tmp_path: Path) -> None:
    """To the last bit."""
    rows = [*responses(1, each=3), bridge_example(5)]
    shared = extract(rows, tiny_reader, tmp_path / "shared", parts=PARTS).store
    for k, row in enumerate(rows[:-1]):
        alone = extract([row, rows[-1]], tiny_reader, tmp_path / f"alone-{k}", parts=PARTS).store
        for part in PARTS:
            assert alone.path(row, part).read_bytes() == shared.path(row, part).read_bytes()


def test_prompts_are_read_once_for_their_responses(
    tiny_reader: Reader, tmp_path: Path, prompts: list[str]
) -> None:
    extract(responses(2, each=3), tiny_reader, tmp_path / "a")
    assert len(prompts) == 2
    extract(responses(2, each=3), tiny_reader, tmp_path / "b", parts=["segments", "relevance"])
    assert len(prompts) == 2 + 2


def test_cut_prompts_are_shared_only_where_they_were_cut_alike(tiny_reader: Reader, tmp_path: Path) -> None:
    """A longer response leaves its prompt less room, so that more of the passages goes."""
    long = replace(TOO_LONG, response="It was opened. " * 9, id="long")
    rows = [replace(TOO_LONG, response="Yes.", id="short"), long]
    done = extract(rows, tiny_reader, tmp_path, truncation="passages", parts=PARTS)
    assert done.failures == {}
    dropped = []
    for row in rows:
        stored = done.store.read(row)
        expected = attribute(tiny_reader, tiny_reader.encode(row, truncation="passages"), prompt=True)
        assert stored.encoded == expected.encoded
        close(stored.response, expected.response)
        close(stored.prompt, expected.prompt, 1e-3)
        dropped.append(stored.encoded.dropped)
    assert 0 < dropped[0] < dropped[1]


# Nothing twice.


def test_what_is_there_is_not_computed_again(copy: Path, tiny_reader: Reader, filled: Filled) -> None:
    before = contents(copy)
    again = extract(responses(2), tiny_reader, copy, parts=PARTS)
    assert (again.computed, again.present, filled) == (0, 4, [])
    assert contents(copy) == before
    nothing = extract([], tiny_reader, copy)
    assert (nothing.computed, nothing.present, nothing.failures) == (0, 0, {})
    more = extract(responses(3), tiny_reader, copy)
    assert (more.computed, more.present) == (2, 4)
    assert filled == [("relevance", "bridge-2-0"), ("relevance", "bridge-2-1")]


@pytest.mark.parametrize("first", [["relevance"], ["prompt"], ["relevance", "matrix-6x4"], ["segments"]])
def test_a_part_that_is_added_later(
    first: list[str], tiny_reader: Reader, tmp_path: Path, filled: Filled
) -> None:
    rows = responses(2, each=1)
    store = extract(rows, tiny_reader, tmp_path, parts=first).store
    if first == ["segments"]:  # they bring the relevance with them
        assert store.parts() == ["relevance", "segments"]
    before, seen = contents(tmp_path), len(filled)
    done = extract(rows, tiny_reader, tmp_path, parts=PARTS)
    assert (done.computed, done.present) == (2, 0)
    assert before.items() <= contents(tmp_path).items()  # what was there stays, to the last bit
    assert not {part for part, _ in filled[seen:]} & {*first, *(["relevance"] if "segments" in first else [])}
    assert all(done.store.holds(row, part) for row in rows for part in PARTS)


@pytest.mark.parametrize(
    ("part", "harm"),
    [
        *((part, "flipped") for part in PARTS),
        *((PARTS[1], harm) for harm in ("gone", "pipe", "dangling link")),
    ],
)
def test_a_damaged_file_is_computed_again(
    part: str, harm: str, copy: Path, tiny_reader: Reader, filled: Filled
) -> None:
    rows, store = responses(2), Store.existing(copy)
    before, path, original = contents(copy), store.path(rows[1], part), store.read(rows[1])
    if harm == "flipped":
        path.write_bytes(flipped(path.read_bytes(), 8 * path.stat().st_size - 1))
    elif harm == "gone":
        path.unlink()
    else:
        put(path, harm)
    done = extract(rows, tiny_reader, copy, parts=PARTS)
    assert (done.computed, done.present) == (1, 3)
    assert filled == [(part, rows[1].id)]
    if part == "relevance":  # its one tangent rounds otherwise than the sum of those of the segments
        close(store.read(rows[1]).response, original.response)
        before.pop(str(path.relative_to(copy)))
    assert before.items() <= contents(copy).items()


# Failures.


@pytest.mark.parametrize(
    ("bad", "place"),
    [(TOO_LONG, 0), (TOO_LONG, 1), (bridge_example(response=None, id="no-response"), 2)],
    ids=["too long, first", "too long", "no response, last"],
)
def test_a_row_that_fails_is_logged_and_passed_over(
    bad: Example, place: int, tiny_reader: Reader, tmp_path: Path
) -> None:
    rows = examples_of(2)
    rows.insert(place, bad)
    done = extract(rows, tiny_reader, tmp_path, parts=PARTS)
    assert done.computed == 2
    assert set(done.failures) == {bad.id}
    for k in range(2):
        assert all(done.store.holds(bridge_example(k), part) for part in PARTS)
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": bad.id, "error": done.failures[bad.id]}
    assert extract(examples_of(2), tiny_reader, tmp_path, parts=PARTS).present == 2
    assert not (tmp_path / "failures.jsonl").exists()  # it is of the last run
    with relevance_mode(tiny_reader.model):  # it can be entered, so the extractor left it
        pass


@pytest.mark.parametrize(
    ("error", "reason", "place"),
    [
        (torch.OutOfMemoryError("out of memory"), "out of memory", 0),
        (IndexError("index out of range in self"), "index out of range in self", 2),
        (RuntimeError(), "RuntimeError", 1),
    ],
    ids=str,
)
def test_what_one_response_raises_spares_the_others_of_its_prompt(
    error: Exception, reason: str, place: int, tiny_reader: Reader, tmp_path: Path, failing: Failing
) -> None:
    rows = [*responses(1, each=3), bridge_example(7)]
    bad = rows[place]
    failing(bad, error)
    done = extract(rows, tiny_reader, tmp_path, parts=PARTS)
    assert (done.computed, done.failures) == (3, {bad.id: reason})
    for row in rows:  # what is pulled does not go through a prefix
        held = [part for part in PARTS if done.store.holds(row, part)]
        assert held == (["prompt"] if row == bad else list(PARTS))


def test_a_response_that_cannot_be_encoded_spares_the_others(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = Reader.encode

    def limited(self: Reader, example: Example, **options: Any) -> Encoded:
        if example.id == "bridge-1":
            raise IndexError("no such token")
        return encode(self, example, **options)

    monkeypatch.setattr(Reader, "encode", limited)
    done = extract(examples_of(3), tiny_reader, tmp_path, parts=PARTS)
    assert (done.computed, done.failures) == (2, {"bridge-1": "no such token"})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=repr)
def test_what_is_not_of_one_response_ends_the_run(
    error: BaseException, tiny_reader: Reader, tmp_path: Path, failing: Failing
) -> None:
    rows = examples_of(3)
    failing(rows[1], error)
    with pytest.raises(type(error)):
        extract(rows, tiny_reader, tmp_path)


@pytest.mark.usefixtures("prompts")
def test_a_prompt_that_fails_fails_all_its_responses(tiny_reader: Reader, tmp_path: Path) -> None:
    rows = [bridge_example(1, question=UNREADABLE, id=f"bad-{k}", response="x " * (k + 1)) for k in range(2)]
    done = extract([*rows, *responses(2)], tiny_reader, tmp_path)
    assert done.failures == dict.fromkeys(["bad-0", "bad-1"], "not enough memory")
    assert done.computed == 4


def test_equal_examples_share_files_and_failures_and_namesakes_do_not(
    tiny_reader: Reader, tmp_path: Path
) -> None:
    rows = [bridge_example(), bridge_example(id="twin"), TOO_LONG, replace(TOO_LONG, id="too-long-too")]
    done = extract(rows, tiny_reader, tmp_path)
    assert (done.computed, set(done.failures)) == (1, {"too-long", "too-long-too"})
    assert len(list((tmp_path / "relevance").iterdir())) == 1
    assert [example.id for example in done.store.examples()] == [example.id for example in rows]
    done = extract([bridge_example(1, id=TOO_LONG.id), TOO_LONG], tiny_reader, tmp_path)
    assert (done.computed, set(done.failures)) == (1, {TOO_LONG.id})


def test_a_full_disk_is_not_a_failure_of_a_row(
    copy: Path, tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would repeat for all rows: the run ends, and leaves nothing half written."""

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    before = contents(copy)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        extract(responses(2), tiny_reader, copy, parts=["matrix-3x2"])
    assert contents(copy) == before
    with relevance_mode(tiny_reader.model):  # it can be entered, so it was left
        pass


# What cannot be had is refused before anything is written.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"composite": "lrp"}, "unknown composite 'lrp'"),
        (
            {"parts": ["signal"]},
            "unknown part 'signal'; choose from reading, relevance, segments, prompt",
        ),
        ({"parts": ["relevance", "matrix-0x5"]}, "unknown part 'matrix-0x5'"),
        ({"parts": []}, "at least one part"),
    ],
)
def test_what_cannot_be_extracted(options, message: str, tiny_reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        extract(examples_of(1), tiny_reader, tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_nothing_can_be_pulled_from_layers_without_derivatives(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "can_pull", lambda _: False)
    with pytest.raises(InputError, match="no derivatives"):
        extract(examples_of(1), tiny_reader, tmp_path / "new", parts=PARTS)
    assert not (tmp_path / "new").exists()
    assert extract(examples_of(1), tiny_reader, tmp_path / "new", parts=["segments"]).computed == 1
