"""The store: one configuration, one file per example, nothing half written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.experiments.store import Configuration, Store
from lrp4rag.generator import Encoded
from lrp4rag.lrp import Relevance
from tests.tiny import bridge_example

READER = {
    "name": "tiny",
    "weights": "w",
    "tokenizer": "t",
    "template": "c",
    "chat_template": True,
    "digest": "d1",
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
    assert json.loads((folder / "manifest.json").read_text()) == CONFIGURATION.as_dict()


def test_write_and_read(tmp_path: Path) -> None:
    store, example = Store.open(tmp_path / "s", CONFIGURATION), bridge_example()
    assert example not in store
    store.write(example, relevance(2.5))
    assert example in store
    assert Store.open(tmp_path / "s", CONFIGURATION).read(example).response.tolist() == [2.5]
    assert len(files(tmp_path / "s")) == 2


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
        Example.create(
            question="", passages=[example.prompt], prompt=example.prompt, response=example.response
        ),
    ]
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


def test_a_folder_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / ".notes.tmp").write_text("mine too")
    with pytest.raises(InputError, match="no store"):
        Store.open(tmp_path, CONFIGURATION)
    assert files(tmp_path) == {"thesis.txt", ".notes.tmp"}


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder"):
        Store.open(tmp_path / "file", CONFIGURATION)


@pytest.mark.parametrize("content", ["", "no JSON", "[]", "3", '{"format": 1}'])
def test_a_broken_manifest(content: str, tmp_path: Path) -> None:
    Store.open(tmp_path, CONFIGURATION)
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"manifest\.json"):
        Store.open(tmp_path, CONFIGURATION)


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    store = Store.open(tmp_path, CONFIGURATION)
    store.write(bridge_example(), relevance())
    expected = files(tmp_path)
    row = store.path(bridge_example(1))
    row.with_name(f".{row.name}.4242.tmp").write_bytes(b"half")
    (tmp_path / ".manifest.json.4242.tmp").write_text("{")
    (tmp_path / ".failures.jsonl.4242.tmp").write_text("{")
    store = Store.open(tmp_path, CONFIGURATION)
    assert files(tmp_path) == expected
    assert bridge_example() in store
    assert bridge_example(1) not in store


@pytest.mark.parametrize("left", ["nothing", "the folder of rows", "a half manifest"])
def test_a_run_killed_before_the_manifest_was_written(left: str, tmp_path: Path) -> None:
    if left != "nothing":
        (tmp_path / "rows").mkdir()
    if left == "a half manifest":
        (tmp_path / ".manifest.json.4242.tmp").write_text("{")
    Store.open(tmp_path, CONFIGURATION)
    assert files(tmp_path) == {"manifest.json"}


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
