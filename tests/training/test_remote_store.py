"""A store behind a URL of fsspec: the same files as one on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from lrp4rag.example import Label
from lrp4rag.reader import Reader
from lrp4rag.training.extract import extract
from lrp4rag.training.inventory import inventory, merge
from lrp4rag.training.store import Store
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from lrp4rag.util.files import place_at, read_bytes, write_atomically
from tests.training.jobs import contents, responses

URL = "memory://bucket/store"


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    yield
    fsspec.filesystem("memory").store.clear()


def remote_contents() -> dict[str, bytes]:
    files = fsspec.filesystem("memory")
    return {path.removeprefix("/bucket/store/"): files.cat(path) for path in files.find("/bucket/store")}


def test_extraction_writes_what_it_writes_on_disk(tiny_reader: Reader, tmp_path: Path) -> None:
    rows, parts = responses(2), ("relevance", "reading")
    here = extract(rows, tiny_reader, tmp_path / "s", parts=parts)
    there = extract(rows, tiny_reader, URL, parts=parts)
    assert (there.computed, there.present) == (here.computed, 0)
    assert remote_contents() == contents(tmp_path / "s")
    assert extract(rows, tiny_reader, URL, parts=parts).present == 4
    assert inventory(URL).files == inventory(tmp_path / "s").files
    assert merge([URL], tmp_path / "merged") == 8
    assert Store.existing(URL).read(rows[0]).response.shape == here.store.read(rows[0]).response.shape


def test_a_damaged_file_is_computed_again(tiny_reader: Reader) -> None:
    rows = responses(1)
    store = extract(rows, tiny_reader, URL).store
    place = store.path(rows[0])
    whole = place.read_bytes()
    place.write_bytes(whole[:-8] + b"12345678")
    with pytest.raises(InputError, match="damaged"):
        store.read(rows[0])
    again = extract(rows, tiny_reader, URL)
    assert (again.computed, place.read_bytes()) == (1, whole)


def test_examples_are_added_relabelled_and_made_anew(tiny_reader: Reader) -> None:
    rows = responses(2)
    store = extract(rows[:2], tiny_reader, URL).store
    relabelled = replace(rows[1], labels=(Label(0, 2),))
    resumed = extract([relabelled, *rows[2:]], tiny_reader, URL)
    assert (resumed.computed, resumed.present) == (2, 1)
    assert store.examples() == [rows[0], relabelled, *rows[2:]]
    write_atomically(store.folder / "examples.jsonl", "no\n")
    with pytest.raises(InputError, match=r"examples\.jsonl: changed or damaged"):
        store.examples()
    with pytest.warns(LRP4RAGWarning, match="made anew"):
        store.add_examples(rows[:1], rebuild=True)
    assert store.examples() == rows[:1]


def test_places() -> None:
    assert place_at("a/b") == Path("a/b")
    assert place_at("file:///tmp/x%20y") == Path("/tmp/x y")
    assert str(place_at(URL)) == URL
    with pytest.raises(InputError, match=r"nope://x: cannot open this"):
        place_at("nope://x")


def test_nothing_is_left_of_a_file_that_was_not_written_to_its_end() -> None:
    from lrp4rag.util.files import written_atomically

    place = place_at(f"{URL}/f")
    with pytest.raises(TypeError), written_atomically(place) as stream:
        stream.writelines([b"half", "no bytes"])
    assert not place.exists()
    write_atomically(place, "whole")
    assert read_bytes(place, 10) == b"whole"
    with pytest.raises(InputError, match="at most"):
        read_bytes(place, 3)
