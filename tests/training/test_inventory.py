"""What a store holds, and stores put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Label
from lrp4rag.features.parts import SENTENCES, SIGNALS
from lrp4rag.training import inventory as module
from lrp4rag.training.inventory import inventory, merge
from lrp4rag.training.store import Store
from tests.test_files import leftover
from tests.training.jobs import contents
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, store_of

ROWS = [*examples(4), *examples(3, first=4, generator="g2")]


def test_what_a_store_holds(tmp_path: Path) -> None:
    rows = [*ROWS, replace(ROWS[0], id="unlabelled", response="Anything.", labels=None, generator=None)]
    store = store_of(tmp_path, rows, [SIGNALS, "matrix-3x2"])
    store.path(ROWS[0], SIGNALS).unlink()
    (tmp_path / SIGNALS / leftover(10**10 - 1)).write_bytes(b"half")
    found = inventory(tmp_path)
    assert (found.folder, found.configuration) == (tmp_path, CONFIGURATION)
    assert (found.examples, found.sources) == (8, 7)
    assert found.generators == {"g1": 4, "g2": 3, "unknown": 1}
    assert found.hallucinated == {"g1": 2, "g2": 1}
    assert found.files == {"relevance": 8, "signals": 7, "matrix-3x2": 8}
    sizes = [path.stat().st_size for path in (tmp_path / "relevance").iterdir()]
    assert found.megabytes["relevance"] == pytest.approx(sum(sizes) / 1e6)
    assert (found.damaged, found.first_damaged) == (dict.fromkeys(found.files, 0), None)
    assert (found.failed, found.failures) == (0, [])


def test_an_empty_store_and_none(tmp_path: Path) -> None:
    store_of(tmp_path / "s", [])
    found = inventory(tmp_path / "s")
    assert (found.examples, found.sources, found.files, found.generators) == (0, 0, {}, {})
    with pytest.raises(InputError, match="no store here"):
        inventory(tmp_path)


def test_stores_of_several_machines_become_one(tmp_path: Path) -> None:
    one = store_of(tmp_path / "one", ROWS[:4], [SIGNALS])
    two = store_of(tmp_path / "two", ROWS[3:], [SIGNALS, SENTENCES])
    assert merge([one.folder, two.folder], tmp_path / "all") == 2 * 7 + 4
    merged = Store.existing(tmp_path / "all")
    assert merged.configuration == one.configuration
    assert merged.examples() == ROWS
    # What both hold is the first one's.
    for row in ROWS:
        origin = one if row in ROWS[:4] else two
        assert merged.path(row).read_bytes() == origin.path(row).read_bytes()
    assert [merged.holds(row, SENTENCES) for row in ROWS] == [False] * 3 + [True] * 4
    before = contents(tmp_path / "all")
    assert merge([one.folder, two.folder], tmp_path / "all") == 0
    assert contents(tmp_path / "all") == before


def test_what_the_merged_store_holds_is_kept(tmp_path: Path) -> None:
    one, out = store_of(tmp_path / "one", ROWS[:2]), store_of(tmp_path / "out", ROWS[1:3])
    held = out.path(ROWS[1]).read_bytes()
    assert merge([one.folder], out.folder) == 1
    assert out.path(ROWS[1]).read_bytes() == held
    assert {example.id for example in out.examples()} == {row.id for row in ROWS[:3]}


def test_the_last_labels_are_taken(tmp_path: Path) -> None:
    later = replace(ROWS[0], labels=(Label(0, 4),))
    one, two = store_of(tmp_path / "one", ROWS[:1]), store_of(tmp_path / "two", [later])
    merge([one.folder, two.folder], tmp_path / "all")
    assert Store.existing(tmp_path / "all").examples() == [later]


@pytest.mark.parametrize(
    "changes",
    [
        {"composite": "paper"},
        {"truncation": "passages"},
        {"reader": {**CONFIGURATION.reader, "dtype": "bfloat16"}},
        {"reader": {**CONFIGURATION.reader, "digest": "9999"}},
    ],
    ids=["composite", "truncation", "dtype", "reader"],
)
def test_stores_that_were_made_differently_are_refused(changes, tmp_path: Path) -> None:
    stores = [store_of(tmp_path / "a", ROWS[:2]), store_of(tmp_path / "b", ROWS[2:])]
    other = store_of(tmp_path / "c", ROWS[:1], **changes)
    with pytest.raises(InputError, match=f"was made with {next(iter(changes))}"):
        merge([*(store.folder for store in stores), other.folder], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    before = contents(other.folder)
    with pytest.raises(InputError, match=f"was made with {next(iter(changes))}"):
        merge([stores[0].folder], other.folder)
    assert contents(other.folder) == before


def test_a_reader_may_go_by_another_name(tmp_path: Path) -> None:
    one = store_of(tmp_path / "one", ROWS[:1])
    two = store_of(tmp_path / "two", ROWS[1:2], reader={**CONFIGURATION.reader, "name": "copy"})
    assert merge([one.folder, two.folder], tmp_path / "all") == 2


def test_a_store_is_not_merged_into_itself(tmp_path: Path) -> None:
    one, two = store_of(tmp_path / "one", ROWS[:1]), store_of(tmp_path / "two", ROWS[1:2])
    with pytest.raises(InputError, match=r"two.*: .*is one of those to merge"):
        merge([one.folder, two.folder], tmp_path / "one" / ".." / "two")
    assert len(contents(two.folder)) == 3


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    one = store_of(tmp_path / "one", ROWS[:1])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(InputError, match="no store here"):
        merge([one.folder, tmp_path / "none"], tmp_path / "out")
    with pytest.raises(InputError, match="has files but is no store"):
        merge([one.folder], tmp_path / "mine")


def test_a_merge_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, whole = store_of(tmp_path / "one", ROWS, [SIGNALS]), tmp_path / "whole"
    merge([one.folder], whole)
    copy, copied = module.shutil.copyfileobj, []

    def killed(source: BinaryIO, target: BinaryIO) -> None:
        copied.append(target)
        if len(copied) == 5:
            target.write(b"half")
            raise KeyboardInterrupt
        copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "copyfileobj", killed)
        with pytest.raises(KeyboardInterrupt):
            merge([one.folder], tmp_path / "out")
    assert len(contents(tmp_path / "out")) == 1 + 4
    assert merge([one.folder], tmp_path / "out") == 2 * len(ROWS) - 4
    assert contents(tmp_path / "out") == contents(whole)
