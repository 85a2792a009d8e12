"""Rows of files in pieces: every row once, with its line, whatever the pieces."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrp4rag.data import load_examples
from lrp4rag.util import rows as module
from lrp4rag.util.errors import InputError
from lrp4rag.util.rows import (
    Piece,
    is_parquet,
    newlines,
    numbered,
    pieces_of,
    require_small_pieces,
    row_at,
    rows_of,
)

ROWS = [{"question": f"Q{k}?", "passages": ["é" * k + "A."], "response": "R."} for k in range(7)]


def written(path: Path, *, before: bytes = b"", end: bytes = b"\n", last: bytes = b"\n") -> Path:
    path.write_bytes(before + end.join(json.dumps(row, ensure_ascii=False).encode() for row in ROWS) + last)
    return path


def pieces(path: Path, size: int) -> list[Piece]:
    found = pieces_of(str(path), size)
    return numbered(found, [newlines(piece) for piece in found])


@pytest.mark.parametrize("size", [1, 7, 60, 61, 200, 10**6])
@pytest.mark.parametrize(
    ("before", "end", "last"),
    [(b"", b"\n", b"\n"), (b"\xef\xbb\xbf", b"\r\n", b""), (b"\n\n", b"\n \n", b"\n\n")],
)
def test_every_row_comes_once_with_its_line(
    tmp_path: Path, size: int, before: bytes, end: bytes, last: bytes
) -> None:
    path = written(tmp_path / "d.jsonl", before=before, end=end, last=last)
    found = [pair for piece in pieces(path, size) for pair in rows_of(piece)]
    assert [row for _, row in found] == ROWS
    lines = [k for k, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1) if line.strip()]
    assert [place.line for place, _ in found] == lines
    assert [row_at(place) for place, _ in found] == ROWS


@pytest.mark.parametrize("size", [5, 10**6])
def test_a_fault_names_its_line(tmp_path: Path, size: int) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n{"c": }\n')
    with pytest.raises(InputError, match=r"d.jsonl, line 3: invalid JSON at column 7"):
        [list(rows_of(piece)) for piece in pieces(path, size)]
    path.write_bytes(b'{"a": 1}\n{"b": "\xff"}\n')
    with pytest.raises(InputError, match="line 2: invalid UTF-8 at byte 7 of the line"):
        [list(rows_of(piece)) for piece in pieces(path, size)]


def test_parquet_reads_as_jsonl_does(tmp_path: Path) -> None:
    rich = [
        {**ROWS[0], "passages": [{"text": "A.", "id": "p1"}, {"text": "B.", "id": None}], "labels": None},
        {
            **ROWS[1],
            "passages": [{"text": "C.", "id": None}],
            "labels": [{"start": 0, "end": 1, "kind": "x"}],
        },
    ]
    pq.write_table(pa.Table.from_pylist(rich), tmp_path / "d.parquet", row_group_size=1)
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(_plain(row)) + "\n" for row in rich))
    assert load_examples(tmp_path / "d.parquet") == load_examples(tmp_path / "d.jsonl")
    found = [pair for piece in pieces_of(str(tmp_path / "d.parquet")) for pair in rows_of(piece)]
    assert [place.line for place, _ in found] == [1, 2]
    assert [row_at(place) for place, _ in found] == [row for _, row in found]


def _plain(row: dict) -> dict:
    without = {key: value for key, value in row.items() if value is not None}
    passages = [{key: value for key, value in one.items() if value is not None} for one in row["passages"]]
    return {**without, "passages": passages}


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"d.parquet: not a good Parquet file"):
        load_examples(tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"e.parquet: no such file"):
        load_examples(tmp_path / "e.parquet")


def test_a_row_of_parquet_that_is_no_example_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([ROWS[0], {**ROWS[1], "passages": []}]), tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"d.parquet, line 2, field 'passages'"):
        load_examples(tmp_path / "d.parquet")


def test_a_damaged_page_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"A.", b"\xff\xff"))  # no UTF-8
    with pytest.raises(InputError, match=r"d.parquet: not a good Parquet file"):
        load_examples(path)


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    for rows in (ROWS[:2], ROWS[2:4]):
        pq.write_table(pa.Table.from_pylist(rows), path)
        assert [one.question for one in load_examples(path)] == [row["question"] for row in rows]


def test_row_groups_that_no_worker_holds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "d.parquet")
    require_small_pieces(str(tmp_path / "d.parquet"))
    monkeypatch.setattr(module, "LARGEST_GROUP", 10)
    with pytest.raises(InputError, match=r"d.parquet: a row group of .*row_group_size"):
        require_small_pieces(str(tmp_path / "d.parquet"))


def test_parquet_is_told_by_the_name_of_the_file() -> None:
    assert is_parquet("https://host/d.parquet?signature=abc")
    assert not is_parquet("https://host/d.jsonl?next=.parquet")
    assert is_parquet("what?.parquet")


def test_rows_behind_a_url_are_asked_for_alone(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/rows/d.jsonl", written(tmp_path / "d.jsonl").read_bytes())
    found = [pair for piece in pieces_of("memory://rows/d.jsonl", 100) for pair in rows_of(piece)]
    assert [row for _, row in found] == ROWS
    assert [row_at(place) for place, _ in found] == ROWS
