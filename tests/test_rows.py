"""Rows of Parquet files, and of folders of files."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lrp4rag.data import load_examples
from lrp4rag.util.errors import InputError
from lrp4rag.data import is_parquet

ROWS = [{"question": f"Q{k}?", "passages": ["é" * k + "A."], "response": "R."} for k in range(7)]


def written(path: Path) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS))
    return path


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


def test_parquet_is_told_by_the_name_of_the_file() -> None:
    assert is_parquet("https://host/d.parquet?signature=abc")
    assert not is_parquet("https://host/d.jsonl?next=.parquet")
    assert is_parquet("what?.parquet")


def test_a_folder_of_files_is_read_as_one(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl")
    pq.write_table(pa.Table.from_pylist(ROWS[:2]), tmp_path / "b.parquet")
    (tmp_path / "notes.txt").write_text("no rows")
    examples = load_examples(tmp_path)
    assert [example.question for example in examples] == [row["question"] for row in [*ROWS, *ROWS[:2]]]
    assert [example.id for example in examples][6:] == ["a.jsonl:7", "b.parquet:1", "b.parquet:2"]
    fsspec.filesystem("memory").pipe("/rows/d.jsonl", (tmp_path / "a.jsonl").read_bytes())
    assert len(load_examples("memory://rows")) == len(ROWS)


def test_ids_of_a_folder_are_refused_twice(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({**ROWS[0], "id": "x"}) + "\n")
    with pytest.raises(InputError, match=r"b.jsonl, line 1.*first on .*a.jsonl, line 1"):
        load_examples(tmp_path)
