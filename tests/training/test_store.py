"""The store: one configuration, one file per example and part, nothing half written."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Example, Label
from lrp4rag.features.parts import PROMPT, RELEVANCE, SIGNALS, part_named
from lrp4rag.lrp import Relevance
from lrp4rag.reader import Encoded
from lrp4rag.strict_json import sealed
from lrp4rag.training.store import Configuration, Store, key_of
from tests.test_files import leftover
from tests.tiny import bridge_example

DEAD = 10**10 - 1
"""A number that no process has."""

READER = {
    **{"name": "tiny", "weights": "w", "config": "c", "tokenizer": "t", "template": "c"},
    **{"chat_template": True, "dtype": "float32", "digest": "d1"},
}
CONFIGURATION = Configuration(READER, "attnlrp")


def relevance(value: float = 1.0) -> Relevance:
    encoded = Encoded(
        (1, 2), (3,), "ab", "c", ((0, 1), (1, 2)), ((0, 1),), (0, 2), ("template", "question", "passage 1")
    )
    row = np.full(1, value, dtype=np.float32)
    return Relevance(encoded, "attnlrp", "response", READER, row, row)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_new_store_has_a_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    Store.open(folder, CONFIGURATION)
    assert files(folder) == {"manifest.json"}
    assert json.loads((folder / "manifest.json").read_text()) == sealed(CONFIGURATION.as_dict())


def test_write_and_read(tmp_path: Path) -> None:
    store, example = Store.open(tmp_path / "s", CONFIGURATION), bridge_example()
    assert not store.holds(example)
    store.write(example, relevance(2.5))
    assert store.holds(example)
    found = Store.open(tmp_path / "s", CONFIGURATION).read(example)
    assert found.response.tolist() == [2.5]
    assert (found.by_segment, found.prompt, found.resampled) == (None, None, None)
    assert files(tmp_path / "s") == {"manifest.json", f"relevance/{key_of(example)}.safetensors"}


def test_parts_have_folders_of_their_own(tmp_path: Path) -> None:
    store, example = Store.open(tmp_path, CONFIGURATION), bridge_example()
    assert store.parts() == []
    by_segment, prompt, matrix = np.ones((3, 1)), np.arange(2.0), np.full((4, 2), 0.5)
    store.write_arrays(example, "matrix-4x2", {"matrix": matrix})
    store.write_arrays(example, PROMPT, {"prompt": prompt})
    store.write_arrays(example, SIGNALS, {"by_segment": by_segment, "logprob": np.array([-0.5])})
    assert store.parts() == [SIGNALS, PROMPT, "matrix-4x2"]
    assert [store.holds(example, part) for part in store.parts()] == [True] * 3
    assert not store.holds(example)
    store.write(example, relevance())
    assert store.parts()[0] == RELEVANCE
    found = Store.existing(tmp_path).read(example)
    np.testing.assert_array_equal(found.by_segment, by_segment)
    np.testing.assert_array_equal(found.prompt, prompt)
    np.testing.assert_array_equal(found.resampled, matrix)
    assert store.arrays(example, SIGNALS, ["logprob"])["logprob"].tolist() == [-0.5]
    assert set(store.arrays(example, PROMPT)) == {"prompt"}
    key = key_of(example)
    assert files(tmp_path) == {
        "manifest.json",
        *(f"{part}/{key}.safetensors" for part in ("relevance", "signals", "prompt", "matrix-4x2")),
    }


def test_the_matrix_that_classifiers_read_comes_first(tmp_path: Path) -> None:
    store = Store.open(tmp_path, CONFIGURATION)
    for part in ("matrix-64x64", "matrix-64x16", "matrix-128x64"):
        store.write_arrays(bridge_example(), part, {"matrix": np.zeros((1, 1))})
    assert store.matrices() == ["matrix-64x16", "matrix-128x64", "matrix-64x64"]


def test_of_several_matrices_the_first_is_read(tmp_path: Path) -> None:
    store, example = Store.open(tmp_path, CONFIGURATION), bridge_example()
    store.write(example, relevance())
    for part, shape in (("matrix-8x4", (8, 4)), ("matrix-4x2", (4, 2))):
        store.write_arrays(example, part, {"matrix": np.zeros(shape)})
    assert store.read(example).resampled.shape == (4, 2)
    store.path(example, "matrix-4x2").unlink()
    assert store.read(example).resampled.shape == (8, 4)


@pytest.mark.parametrize("part", [RELEVANCE, SIGNALS])
@pytest.mark.parametrize("content", [b"", b"x" * 50, "cut"])
def test_a_damaged_file_is_not_held(part: str, content: bytes | str, tmp_path: Path) -> None:
    store, example = Store.open(tmp_path, CONFIGURATION), bridge_example()
    store.write(example, relevance())
    store.write_arrays(example, SIGNALS, {"by_segment": np.ones((3, 1))})
    path = store.path(example, part)
    path.write_bytes(path.read_bytes()[:-1] if isinstance(content, str) else content)
    assert [one for one in (RELEVANCE, SIGNALS) if not store.holds(example, one)] == [part]
    with pytest.raises(InputError, match=path.name):
        store.read(example)


@pytest.mark.parametrize("name", ["relevance", "signals", "prompt", "matrix-64x16", "matrix-1x1"])
def test_names_of_parts(name: str) -> None:
    assert part_named(name) == name


@pytest.mark.parametrize(
    "name", ["", "signal", "matrix", "matrix-0x5", "matrix-5x0", "matrix-axb", "matrix-4x", "matrix-12345x4"]
)
def test_unknown_parts_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=rf"unknown part '{name}'; choose from relevance, signals"):
        part_named(name)


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    store = Store.open(tmp_path, CONFIGURATION)
    with pytest.raises(InputError, match="no relevance for example 'bridge-3'"):
        store.read(bridge_example(3))


def test_rows_are_keyed_by_content(tmp_path: Path) -> None:
    """An id, a label or a source may change; prompt, parts and response may not."""
    store, example = Store.open(tmp_path, CONFIGURATION), bridge_example()
    same = [replace(example, id="x", source="y", generator="z", labels=())]
    others: list[Example] = [
        bridge_example(response="Another."),
        bridge_example(question="Which bridge?"),
        bridge_example(template="{context} {question}"),
        # The same prompt, but other characters of it are passages.
        Example(
            question="", passages=[example.prompt], prompt=example.prompt, response=example.response
        ),
    ]
    assert {key_of(one) for one in same} == {key_of(example)}
    assert {store.path(one) for one in same} == {store.path(example)}
    assert len({store.path(one) for one in (example, *others)}) == 5


@pytest.mark.parametrize(
    ("other", "old", "new"),
    [
        (Configuration(READER, "cp_lrp"), "attnlrp", "cp_lrp"),
        (Configuration(READER, "attnlrp", target="largest"), "response", "largest"),
        (Configuration(READER, "attnlrp", truncation="passages"), "error", "passages"),
        (Configuration(READER | {"digest": "d2"}, "attnlrp"), "d1", "d2"),
        (Configuration(READER | {"dtype": "bfloat16"}, "attnlrp"), "d1", "bfloat16"),
    ],
    ids=["composite", "target", "truncation", "reader", "dtype"],
)
def test_another_configuration_is_refused(other: Configuration, old: str, new: str, tmp_path: Path) -> None:
    Store.open(tmp_path, CONFIGURATION).write(bridge_example(), relevance())
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    with pytest.raises(InputError) as caught:
        Store.open(tmp_path, other)
    for part in (str(tmp_path), old, new):
        assert part in str(caught.value)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before


def test_the_name_a_reader_goes_by_may_differ(tmp_path: Path) -> None:
    Store.open(tmp_path, CONFIGURATION)
    before = (tmp_path / "manifest.json").read_bytes()
    Store.open(tmp_path, Configuration(READER | {"name": "other"}, "attnlrp"))
    assert (tmp_path / "manifest.json").read_bytes() == before


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
    assert files(tmp_path) == {foreign, leftover(DEAD)}
    assert (tmp_path / foreign).read_text() == "mine"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="this is no folder"):
        Store.open(tmp_path / "file", CONFIGURATION)


@pytest.mark.parametrize("content", ["", "no JSON", "[]", "3", '{"format": 1}', '{"format": 3, "x": 1}'])
def test_a_broken_manifest(content: str, tmp_path: Path) -> None:
    Store.open(tmp_path, CONFIGURATION)
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"manifest\.json"):
        Store.open(tmp_path, CONFIGURATION)
    with pytest.raises(InputError, match=r"manifest\.json"):
        Store.existing(tmp_path)


def test_an_existing_store_tells_how_it_was_made(tmp_path: Path) -> None:
    other = Configuration(READER, "cp_lrp", truncation="passages")
    Store.open(tmp_path / "s", other)
    assert Store.existing(tmp_path / "s").configuration == other
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="there is no store here"):
            Store.existing(folder)
        assert not (folder / "manifest.json").exists()


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    store = Store.open(tmp_path, CONFIGURATION)
    store.write(bridge_example(), relevance())
    expected = files(tmp_path)
    (tmp_path / "signals").mkdir()
    (tmp_path / "study").mkdir()  # a folder that others keep
    for folder in ("", "relevance", "signals", "study"):
        (tmp_path / folder / leftover(DEAD)).write_bytes(b"half")
    store = Store.open(tmp_path, CONFIGURATION)
    assert files(tmp_path) == {*expected, f"study/{leftover(DEAD)}"}
    assert store.holds(bridge_example())
    assert not store.holds(bridge_example(1))


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path, CONFIGURATION)
    mine = tmp_path / leftover(os.getppid())
    mine.write_text("half")
    Store.open(tmp_path, CONFIGURATION)
    assert mine.read_text() == "half"


@pytest.mark.parametrize("left", ["nothing", "folders of parts", "a half manifest", "both"])
def test_a_run_killed_before_the_manifest_was_written(left: str, tmp_path: Path) -> None:
    if left in ("folders of parts", "both"):
        for part in ("relevance", "signals", "prompt", "matrix-64x16"):
            (tmp_path / part).mkdir()
    if left in ("a half manifest", "both"):
        (tmp_path / leftover(DEAD)).write_text("{")
    store = Store.open(tmp_path, CONFIGURATION)
    assert files(tmp_path) == {"manifest.json"}
    assert not store.holds(bridge_example())


def test_examples_are_remembered_with_their_last_labels(tmp_path: Path) -> None:
    store, path = Store.open(tmp_path, CONFIGURATION), tmp_path / "examples.jsonl"
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
    assert Store.existing(tmp_path).examples() == [rows[0], labelled, rows[2], namesake]


def test_the_manifest_says_which_data_it_is_of(tmp_path: Path) -> None:
    def data(folder: Path) -> object:
        return json.loads((folder / "manifest.json").read_text()).get("data")

    stores = [Store.open(tmp_path / name, CONFIGURATION) for name in "ab"]
    assert data(tmp_path / "a") is None
    for store in stores:
        store.add_examples([bridge_example(0), bridge_example(1)])
    first = data(tmp_path / "a")
    assert first["examples"] == 2
    assert first["sha256"] == hashlib.sha256((tmp_path / "a/examples.jsonl").read_bytes()).hexdigest()
    assert data(tmp_path / "b") == first
    stores[1].add_examples([bridge_example(2)])
    assert data(tmp_path / "b") != first
    assert Store.open(tmp_path / "b", CONFIGURATION).examples() == Store.existing(tmp_path / "b").examples()
    assert data(tmp_path / "b")["examples"] == 3


def test_failures_are_a_sorted_log_that_is_replaced(tmp_path: Path) -> None:
    store, log = Store.open(tmp_path, CONFIGURATION), tmp_path / "failures.jsonl"
    store.log_failures({"b": "too long\nby far", "a": "é"})
    lines = log.read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "a", "error": "é"},
        {"id": "b", "error": "too long\nby far"},
    ]
    store.log_failures({"c": "other"})
    assert [json.loads(line)["id"] for line in log.read_text().splitlines()] == ["c"]
    store.log_failures({})
    assert not log.exists()
    store.log_failures({})
