"""The store: one configuration, one file per example and part, nothing half written."""

from __future__ import annotations

import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from lrp4rag.example import Example, Label
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE, part_named
from lrp4rag.features.record import Record
from lrp4rag.features.replay import AROUND, PlainReplay
from lrp4rag.reader import Reader
from lrp4rag.reader.reading import LIKELIHOODS
from lrp4rag.training.extract import extract
from lrp4rag.training.extractor import Extractor, Group
from lrp4rag.training.manifest import dump_examples, parse_examples
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Configuration, Store, key_of, read_arrays, write_arrays
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.strict_json import sealed
from tests.classifiers.samples import READER, relevance_of
from tests.tiny import bridge_example
from tests.training.jobs import TOO_LONG, contents, responses
from tests.training.stored import CONFIGURATION, SIGNALS
from tests.util.test_files import leftover

DEAD = 10**10 - 1
"""A number that no process has."""
EXAMPLE = bridge_example()
RELEVANCES = relevance_of([2.5])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store"


@pytest.fixture
def store(folder: Path) -> Store:
    return Store.open(folder, CONFIGURATION)


# Parts.


def test_a_new_store_has_a_manifest_and_then_what_is_written(store: Store, folder: Path) -> None:
    assert json.loads((folder / "manifest.json").read_text()) == sealed(CONFIGURATION.as_dict())
    assert set(contents(folder)) == {"manifest.json"}
    assert not store.holds(EXAMPLE)
    store.write(EXAMPLE, RELEVANCES)
    assert store.holds(EXAMPLE)
    found = Store.open(folder, CONFIGURATION).read(EXAMPLE)
    assert found.response.tolist() == RELEVANCES.response.tolist()
    assert (found.by_segment, found.prompt, found.resampled) == (None, None, None)
    assert set(contents(folder)) == {"manifest.json", f"relevance/{key_of(EXAMPLE)}.safetensors"}


def test_parts_have_folders_of_their_own(store: Store, folder: Path) -> None:
    assert store.parts() == []
    by_segment, prompt, matrix = np.ones((3, 1)), np.arange(2.0), np.full((4, 2), 0.5)
    store.write_arrays(EXAMPLE, "matrix-4x2", {"matrix": matrix})
    store.write_arrays(EXAMPLE, PROMPT, {"prompt": prompt})
    store.write_arrays(EXAMPLE, SIGNALS, {"by_segment": by_segment, "logprob": np.array([-0.5])})
    assert store.parts() == [PROMPT, "matrix-4x2", SIGNALS]
    assert [store.holds(EXAMPLE, part) for part in store.parts()] == [True] * 3
    assert not store.holds(EXAMPLE)
    with pytest.raises(InputError, match="no relevance for example 'bridge-0'"):
        store.read(EXAMPLE)
    store.write(EXAMPLE, RELEVANCES)
    assert store.parts()[0] == RELEVANCE
    found = Store.existing(folder).read(EXAMPLE)
    np.testing.assert_array_equal(found.by_segment, by_segment)
    np.testing.assert_array_equal(found.prompt, prompt)
    np.testing.assert_array_equal(found.resampled, matrix)
    assert store.arrays(EXAMPLE, SIGNALS, ["logprob"])["logprob"].tolist() == [-0.5]
    assert set(store.arrays(EXAMPLE, PROMPT)) == {"prompt"}
    names = {f"{part}/{key_of(EXAMPLE)}.safetensors" for part in store.parts()}
    assert set(contents(folder)) == {"manifest.json", *names}


def test_the_matrix_that_classifiers_read_comes_first(store: Store) -> None:
    store.write(EXAMPLE, RELEVANCES)
    for part, shape in (("matrix-64x64", (2, 1)), ("matrix-64x16", (3, 1)), ("matrix-128x64", (4, 1))):
        store.write_arrays(EXAMPLE, part, {"matrix": np.zeros(shape)})
    assert store.matrices() == ["matrix-64x16", "matrix-128x64", "matrix-64x64"]
    assert store.read(EXAMPLE).resampled.shape == (3, 1)
    store.path(EXAMPLE, "matrix-64x16").unlink()
    assert store.read(EXAMPLE).resampled.shape == (4, 1)


def test_names_of_parts() -> None:
    for name in ("relevance", "segments", "prompt", "matrix-64x16", "matrix-1x1"):
        assert part_named(name) == name
    bad = ("", "signal", "matrix", "matrix-0x5", "matrix-5x0", "matrix-axb", "matrix-4x", "matrix-12345x4")
    for name in bad:
        with pytest.raises(
            InputError, match=rf"unknown part '{name}'; choose from reading, relevance, segments"
        ):
            part_named(name)


def test_files_are_keyed_by_content(store: Store) -> None:
    """An id, a label or a source may change; prompt, parts and response may not."""
    same = replace(EXAMPLE, id="x", source="y", generator="z", labels=())
    others = [
        bridge_example(response="Another."),
        bridge_example(question="Which bridge?"),
        bridge_example(template="{context} {question}"),
        # The same prompt, but other characters of it are passages.
        Example(question="", passages=[EXAMPLE.prompt], prompt=EXAMPLE.prompt, response=EXAMPLE.response),
    ]
    assert store.path(same) == store.path(EXAMPLE)
    assert len({store.path(one) for one in (EXAMPLE, *others)}) == 5


# Configurations, and folders that are none or were left half made.


@pytest.mark.parametrize(
    ("other", "old", "new"),
    [
        (Configuration(READER, "cp_lrp"), "attnlrp", "cp_lrp"),
        (Configuration(READER, "attnlrp", target="largest"), "response", "largest"),
        (Configuration(READER, "attnlrp", truncation="passages"), "error", "passages"),
        (Configuration(READER | {"digest": "d2"}, "attnlrp"), READER["digest"], "d2"),
        (Configuration(READER | {"dtype": "bfloat16"}, "attnlrp"), READER["dtype"], "bfloat16"),
    ],
    ids=["composite", "target", "truncation", "reader", "dtype"],
)
def test_another_configuration_is_refused(
    other: Configuration, old: str, new: str, store: Store, folder: Path
) -> None:
    store.write(EXAMPLE, RELEVANCES)
    before = contents(folder)
    with pytest.raises(InputError) as caught:
        Store.open(folder, other)
    for part in (str(folder), old, new):
        assert part in str(caught.value)
    Store.open(folder, Configuration(READER | {"name": "other"}, "attnlrp"))  # the name may differ
    assert contents(folder) == before


def test_an_existing_store_says_how_it_was_made(tmp_path: Path) -> None:
    other = Configuration(READER, "cp_lrp", truncation="passages")
    Store.open(tmp_path / "s", other)
    assert Store.existing(tmp_path / "s").configuration == other
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="there is no store here"):
            Store.existing(folder)
        assert not (folder / "manifest.json").exists()


@pytest.mark.parametrize(
    "foreign",
    [
        *("thesis.txt", ".notes.tmp", "examples.jsonl", "relevance/mine", "data/x", "manifest.json.bak"),
        *(".manifest.json.99999999.tmp", f"{leftover(DEAD)}.bak", f"relevance/{leftover(DEAD)}"),
    ],
)
def test_a_folder_that_is_no_store_is_refused_and_left_alone(foreign: str, tmp_path: Path) -> None:
    """Whatever else is there looks like what a killed run leaves."""
    (tmp_path / leftover(DEAD)).write_text("{")
    (tmp_path / "signals").mkdir()
    (tmp_path / foreign).parent.mkdir(exist_ok=True)
    (tmp_path / foreign).write_text("mine")
    with pytest.raises(InputError, match="no store"):
        Store.open(tmp_path, CONFIGURATION)
    assert contents(tmp_path) == {foreign: b"mine", leftover(DEAD): b"{"}
    with pytest.raises(InputError, match="this is no folder"):
        Store.open(tmp_path / foreign, CONFIGURATION)


def test_several_may_make_a_store_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = os.fsync
    monkeypatch.setattr("os.fsync", lambda descriptor: (time.sleep(0.05), slow(descriptor)))
    together = Barrier(4)

    def open_it(_: int) -> Store:
        together.wait()
        return Store.open(folder, CONFIGURATION)

    with ThreadPoolExecutor(4) as pool:
        assert [one.configuration for one in pool.map(open_it, range(4))] == [CONFIGURATION] * 4
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


def test_leftovers_of_a_killed_run_are_removed(store: Store, folder: Path) -> None:
    store.write(EXAMPLE, RELEVANCES)
    expected = set(contents(folder))
    (folder / "prompt").mkdir()
    (folder / "study").mkdir()  # a folder that others keep
    for place in ("", "relevance", "prompt", "study"):
        (folder / place / leftover(DEAD)).write_bytes(b"half")
    alive = leftover(os.getppid())  # another process is writing it
    (folder / alive).write_bytes(b"half")
    store = Store.open(folder, CONFIGURATION)
    assert set(contents(folder)) == {*expected, f"study/{leftover(DEAD)}", alive}
    assert store.holds(EXAMPLE)
    assert not store.holds(bridge_example(1))


def test_a_run_killed_before_the_manifest_was_written(tmp_path: Path) -> None:
    for part in ("relevance", "segments", "prompt", "matrix-64x16"):
        (tmp_path / part).mkdir()
    (tmp_path / leftover(DEAD)).write_text("{")
    store = Store.open(tmp_path, CONFIGURATION)
    assert set(contents(tmp_path)) == {"manifest.json"}
    assert not store.holds(EXAMPLE)


# Examples and failures.


def test_examples_are_remembered_with_their_last_labels(store: Store, folder: Path) -> None:
    path = folder / "examples.jsonl"
    assert store.examples() == []
    store.add_examples([])
    assert not path.exists()
    rows = [bridge_example(k) for k in range(3)]
    store.add_examples(rows)
    written = path.stat().st_mtime_ns
    store.add_examples(rows[1:])  # nothing new: nothing is written
    assert path.stat().st_mtime_ns == written
    labelled = replace(rows[1], labels=(Label(0, 2),), generator="g")
    namesake = bridge_example(7, id=rows[0].id)  # another example that goes by the same id
    store.add_examples([labelled, namesake])
    assert Store.existing(folder).examples() == [rows[0], labelled, rows[2], namesake]
    noted = json.loads((folder / "manifest.json").read_text())["data"]
    assert noted == {"examples": 4, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


EXAMPLES = [
    EXAMPLE,
    bridge_example(1, response="Öffnung\r\n 1901 \u2028 früh 🌉", labels=(Label(0, 7, "conflict", True),)),
    bridge_example(2, labels=(), source="s", generator="g"),
    bridge_example(3, response=None),
    Example(question="", passages=["Only\nthis."], prompt="Only\nthis.", response="Yes."),
]


def test_examples_come_back_as_they_were_written() -> None:
    content = dump_examples(EXAMPLES)
    assert parse_examples(content, Path("e")) == EXAMPLES
    assert [json.loads(line)["id"] for line in content.splitlines()] == [example.id for example in EXAMPLES]
    assert parse_examples(dump_examples([]), Path("e")) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\xff\xfe", r"line 2: Invalid JSON"),
        (b"[" * 100_000, r"line 2: Invalid JSON"),
        (dump_examples(EXAMPLES[1:2])[:-30], r"line 2: Invalid JSON"),
        (b"[1, 2]", r"line 2: Input should be an object"),
        (b'{"question": "Q", "passages": ["P"], "response": "R"}', r"line 2, field 'id': it is missing"),
        (b'{"id": 3}', r"line 2, field 'id': Input should be a valid string"),
    ],
    ids=range(6),
)
def test_what_is_no_example_is_named_by_its_line(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=rf"examples\.jsonl, {message}"):
        parse_examples(dump_examples(EXAMPLES[:1]) + line + b"\n", Path("examples.jsonl"))


def test_failures_are_a_sorted_log_that_is_replaced(store: Store, folder: Path) -> None:
    log = folder / "failures.jsonl"
    store.log_failures({"b": "too long\nby far", "a": "é"})
    assert [json.loads(line) for line in log.read_text().splitlines()] == [
        {"id": "a", "error": "é"},
        {"id": "b", "error": "too long\nby far"},
    ]
    assert store.failures() == {"a": "é", "b": "too long\nby far"}
    store.log_failures({"c": "other"})
    assert store.failures() == {"c": "other"}
    for _ in range(2):
        store.log_failures({})
        assert not log.exists()


# Arrays on disk.

ARRAYS = {
    "wide": np.linspace(-3, 3, 24).reshape(2, 3, 4),
    "single": np.float32([[0.1, -0.2]]).T,
    "ranks": np.array([0, 70_000], dtype=np.int32),
    "turned": np.arange(6.0).reshape(2, 3).T,  # not contiguous
    "none": np.zeros((0, 4)),
}


def test_real_arrays_are_float16_on_disk_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, ARRAYS | {"large": np.array([1e6, -1e6])})
    found = read_arrays(path)
    assert found.pop("large").tolist() == [65504.0, -65504.0]  # the largest of float16
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        expected = array if name == "ranks" else array.astype(np.float16).astype(np.float32)
        assert found[name].dtype == expected.dtype
        np.testing.assert_array_equal(found[name], expected)
    assert set(read_arrays(path, ["ranks", "single"])) == {"ranks", "single"}
    assert read_arrays(path, ()) == {}
    with pytest.raises(InputError, match=r"a\.safetensors: no array 'entropy'"):
        read_arrays(path, ["ranks", "entropy"])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"damaged \(not a safetensors file.*compute it again"):
        read_arrays(path, ())
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(LRP4RAGError, match="'bad' has NaN or Inf"):
            write_arrays(tmp_path / "bad", {"good": np.ones(2), "bad": np.array([0, value])})
    assert [one.name for one in tmp_path.iterdir()] == ["a.safetensors"]


def test_arrays_are_read_as_the_name_they_were_written_as(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", ARRAYS, "signals/key")
    write_arrays(tmp_path / "b", dict(reversed(ARRAYS.items())), "signals/key")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert set(read_arrays(tmp_path / "a", name="signals/key")) == set(ARRAYS)
    assert set(read_arrays(tmp_path / "a")) == set(ARRAYS)
    write_arrays(tmp_path / "b", ARRAYS)
    for path, found in ((tmp_path / "a", "signals/key"), (tmp_path / "b", "None")):
        with pytest.raises(InputError, match=rf"damaged \(it was written as {found}\); run lrp4rag extract"):
            read_arrays(path, (), "signals/other")


# Readings.

T = len(EXAMPLE.response.split(" "))


def reading_of(example: Example = EXAMPLE, seed: int = 0) -> Record:
    """Random numbers that float16 holds."""
    draw, encoded = np.random.default_rng(seed), relevance_of([0.0] * T, text=example.response).encoded
    signals = {name: draw.normal(size=T).astype(np.float16).astype(np.float32) for name in LIKELIHOODS}
    signals["places"] = np.array([[0, 2, 0, 0, 1, 1], [7, 13, 1, 2, 3, 70_000]], dtype=np.int32)
    signals["scores"] = np.array([[-1.5, -20.25, -0.5], [0, -2, 0]], dtype=np.float32)
    return Record(encoded, READER, signals, {AROUND: draw.normal(size=(1, T + 1, 6)).astype(np.float16)})


def assert_same_reading(found: Record, expected: Record) -> None:
    """Up to float16."""
    assert (found.encoded, found.reader) == (expected.encoded, expected.reader)
    signals = {name: array for name, array in expected.arrays().items() if name != AROUND}
    assert (set(found.signals), set(found.states)) == (set(signals), {AROUND})
    for name, array in found.signals.items():
        given = signals[name]
        whole = name == "places"
        assert array.dtype == (np.int32 if whole else np.float32)
        np.testing.assert_array_equal(array, given if whole else given.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(found.states[AROUND], expected.states[AROUND])


@pytest.mark.parametrize("values", [True, False], ids=["with values", "without"])
def test_a_reading_comes_back_as_it_was_written(values: bool, store: Store) -> None:
    given, example = reading_of(), replace(EXAMPLE, generator="g")
    if not values:
        nothing = {"places": np.zeros((0, 6), dtype=np.int32), "scores": np.zeros((0, 3), dtype=np.float32)}
        given = replace(given, signals={**given.signals, **nothing})
    store.write_record(example, given)
    assert_same_reading(store.read_record(EXAMPLE), given)
    assert (store.read_record(example).generator, store.read_record(EXAMPLE).generator) == ("g", None)


def test_a_reading_that_is_missing_is_named(store: Store) -> None:
    with pytest.raises(InputError, match=r"no reading of example 'bridge-0'; extract it \(part reading\)"):
        store.read_record(EXAMPLE)


def test_arrays_without_tokens_are_no_reading(store: Store) -> None:
    store.write_arrays(EXAMPLE, READING, {AROUND: np.zeros((1, T + 1, 6))})
    with pytest.raises(InputError, match="not a reading"):
        store.read_record(EXAMPLE)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reading_with_what_is_no_number_is_refused(value: float, store: Store) -> None:
    given = reading_of()
    signals = {**given.signals, "entropy": np.full(T, value, dtype=np.float32)}
    with pytest.raises(LRP4RAGError, match="'entropy' has NaN or Inf"):
        store.write_record(EXAMPLE, replace(given, signals=signals))
    assert not store.holds(EXAMPLE, READING)


# Rows of a store that holds readings only.

LABELLED = [
    bridge_example(k, labels=(Label(0, 6),) if k else (), generator=f"g{k}", id=f"row-{k}") for k in range(3)
]


@pytest.fixture
def rows(store: Store) -> Rows:
    store.add_examples([*LABELLED, bridge_example(7)])
    for k, example in enumerate((*LABELLED, bridge_example(7))):
        store.write_record(example, reading_of(example, seed=k))
    return Rows.open(store.folder)


def test_rows_are_the_labelled_ones_with_a_reading(rows: Rows) -> None:
    assert rows.examples == tuple(LABELLED)
    rows.store.path(LABELLED[1], READING).unlink()
    assert Rows.open(rows.store.folder).examples == (LABELLED[0], LABELLED[2])


def test_encodings_of_rows_are_those_of_readings(rows: Rows) -> None:
    assert rows.encodings == [reading_of(example).encoded for example in LABELLED]


def test_readings_of_rows_come_in_their_order(rows: Rows) -> None:
    found = list(rows.select([2, 0]).readings())
    assert [one.generator for one in found] == ["g2", "g0"]
    for one, k in zip(found, (2, 0), strict=True):
        assert_same_reading(one, reading_of(LABELLED[k], seed=k))


def test_rows_without_relevance_say_so(rows: Rows) -> None:
    assert (rows.has(READING), rows.has(RELEVANCE)) == (True, False)
    with pytest.raises(InputError, match="no relevance for example 'row-0'"):
        _ = rows.relevances


# Readings by a reader.


def test_readings_are_extracted_as_a_replay_gives_them(tiny_reader: Reader, tmp_path: Path) -> None:
    given = responses(2)
    extraction = extract(given, tiny_reader, tmp_path / "s", parts=(READING,))
    assert (extraction.computed, extraction.failures) == (4, {})
    assert extraction.store.parts() == [READING]
    replay = PlainReplay(tiny_reader)
    for example in given:
        expected = replay(tiny_reader.encode(example))
        assert_same_reading(extraction.store.read_record(example), expected)


def test_reading_and_relevance_in_one_call(tiny_reader: Reader, tmp_path: Path) -> None:
    """The order of parts makes no difference, and each is as it is alone."""
    given = responses(2)
    for name, parts in {
        "both": (RELEVANCE, READING),
        "turned": (READING, RELEVANCE),
        "reading": (READING,),
        "relevance": (RELEVANCE,),
    }.items():
        assert extract(given, tiny_reader, tmp_path / name, parts=parts).failures == {}
    both = contents(tmp_path / "both")
    assert both == contents(tmp_path / "turned")
    assert both == contents(tmp_path / "reading") | contents(tmp_path / "relevance")


def test_an_extractor_leaves_relevance_mode_to_read(tiny_reader: Reader, store: Store) -> None:
    """Also where the prompt before left it open."""
    one, other = responses(2, each=1)
    extractor = Extractor(tiny_reader, store)
    for example in (one, other):
        assert extractor.run(Group((example,)), (RELEVANCE, READING)) == {}
    extractor.close()
    expected = PlainReplay(tiny_reader)
    for example in (one, other):
        assert_same_reading(store.read_record(example), expected(tiny_reader.encode(example)))


def test_readings_are_computed_once_and_damaged_ones_again(tiny_reader: Reader, tmp_path: Path) -> None:
    given = responses(2)
    store = extract(given, tiny_reader, tmp_path / "s", parts=(READING,)).store
    before, path = contents(store.folder), store.path(given[2], READING)
    path.write_bytes(path.read_bytes()[:-5])
    again = extract([*given, TOO_LONG], tiny_reader, tmp_path / "s", parts=(READING,))
    assert (again.computed, again.present, set(again.failures)) == (1, 3, {TOO_LONG.id})
    assert contents(store.folder)[f"reading/{path.name}"] == before[f"reading/{path.name}"]
