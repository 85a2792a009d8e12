"""What a store holds and why responses failed, and stores put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from lrp4rag.example import Label
from lrp4rag.report.inventory import MOST, reasons_table
from lrp4rag.training import inventory as module
from lrp4rag.training.inventory import Reason, inventory, merge, reasons_of
from lrp4rag.training.store import Store
from lrp4rag.util.errors import InputError
from tests.training.jobs import contents
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, SENTENCES, SIGNALS, store_of
from tests.util.test_files import leftover

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


def test_an_empty_store(tmp_path: Path) -> None:
    found = inventory(store_of(tmp_path, []).folder)
    assert (found.examples, found.sources, found.files, found.generators) == (0, 0, {}, {})


def test_stores_of_several_machines_become_one(tmp_path: Path) -> None:
    one = store_of(tmp_path / "one", ROWS[:4], [SIGNALS])
    # A reader may go by another name.
    copy = {**CONFIGURATION.reader, "name": "copy"}
    relabelled = [replace(ROWS[3], labels=(Label(0, 4),)), *ROWS[4:]]
    two = store_of(tmp_path / "two", relabelled, [SIGNALS, SENTENCES], reader=copy)
    assert merge([one.folder, two.folder], tmp_path / "all") == 2 * 7 + 4
    merged = Store.existing(tmp_path / "all")
    assert merged.configuration == one.configuration
    assert merged.examples() == [*ROWS[:3], *relabelled]  # of labels, the last
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


@pytest.mark.parametrize(
    "changes",
    [{"truncation": "passages"}, {"reader": {**CONFIGURATION.reader, "digest": "9999"}}],
    ids=["truncation", "reader"],
)
def test_stores_that_were_made_differently_are_refused(changes, tmp_path: Path) -> None:
    one, other = store_of(tmp_path / "a", ROWS[:2]), store_of(tmp_path / "c", ROWS[:1], **changes)
    before = contents(other.folder)
    for folders, out in (([one.folder, other.folder], tmp_path / "out"), ([one.folder], other.folder)):
        with pytest.raises(InputError, match=f"was made with {next(iter(changes))}"):
            merge(folders, out)
    assert not (tmp_path / "out").exists()
    assert contents(other.folder) == before


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    one, two = store_of(tmp_path / "one", ROWS[:1]), store_of(tmp_path / "two", ROWS[1:2])
    with pytest.raises(InputError, match=r"two.*: .*is one of those to merge"):
        merge([one.folder, two.folder], tmp_path / "one" / ".." / "two")
    assert len(contents(two.folder)) == 3
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(InputError, match="no store here"):
        merge([one.folder, tmp_path / "none"], tmp_path / "out")
    with pytest.raises(InputError, match="has files but is no store"):
        merge([one.folder], tmp_path)


def test_a_merge_that_was_killed_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_reasons_that_differ_in_numbers_are_one_and_the_most_frequent_comes_first() -> None:
    failures = {
        "a": "out of memory",
        "b": "prompt of 1,200 and response of 7 tokens exceed 512",
        "c": "other",
        "d": "prompt of 900 and response of 88 tokens exceed 512",
        "e": "other",
        "f": "prompt of 2.5 and response of 0 tokens exceed 512",
    }
    assert reasons_of(failures) == [
        Reason("prompt of 1,200 and response of 7 tokens exceed 512", 3, "b"),
        Reason("other", 2, "c"),
        Reason("out of memory", 1, "a"),
    ]
    assert reasons_of({}) == []


def test_thousands_of_failures_are_a_short_table() -> None:
    failures = {f"row-{k}": f"reason {chr(97 + k % 26)}{chr(97 + k // 26 % 26)}" for k in range(5000)}
    lines = reasons_table(reasons_of(failures)).splitlines()
    assert len(lines) == 1 + MOST + 1
    assert lines[0].split() == ["count", "first", "reason"]
    assert sum(int(line.split()[0]) for line in lines[1:]) == 5000
    assert lines[-1].endswith(f"for {26 * 26 - MOST} other reasons; failures.jsonl has all")


def test_a_reason_is_one_line_that_a_terminal_does_not_obey() -> None:
    table = reasons_table(reasons_of({"id\x1b[31m\n" + "x" * 999: "a\nWarning: b\r" + "y" * 9999}))
    (_, line) = table.split("\n")
    assert len(line) < 350
    assert "␛[31m" in line
    assert "a Warning: b y" in line
