"""A store as a Parquet table: read back with pyarrow and pandas, nulls for what a row lacks."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lrp4rag.features.parts import PROMPT, READING, RELEVANCE
from lrp4rag.training import inventory as module
from lrp4rag.training.inventory import export
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning
from tests.training.labelled import examples
from tests.training.stored import fill, store_of

pq = pytest.importorskip("pyarrow.parquet", reason="pip install 'lrp4rag[parquet]'")

ROWS = examples(4)
BASE = [
    *("id", "key", "source", "generator", "question", "prompt", "response"),
    *("hallucinated", "labels", "token_flags", "tokens", "R_response", "R_prompt", "logits"),
    *("logprob", "entropy", "rank"),
]


def exported(store: Store) -> list[dict]:
    out = store.folder / "table.parquet"
    assert export(store.folder, out) == pq.read_metadata(out).num_rows
    return pq.read_table(out).to_pylist()


@pytest.mark.filterwarnings("ignore:.*have no file of")
def test_one_row_for_each_response(tmp_path: Path) -> None:
    store = store_of(tmp_path, ROWS, [READING, PROMPT])
    store.add_examples(examples(2, first=4))  # without relevance
    rows = exported(store)
    assert [list(row) for row in rows] == [BASE] * 4
    for k, (row, example) in enumerate(zip(rows, ROWS, strict=True), start=1):
        words = example.response.split(" ")
        for name in ("id", "source", "generator", "question", "prompt", "response", "hallucinated"):
            assert row[name] == getattr(example, name)
        assert row["key"] == key_of(example)
        assert row["labels"] == [{"start": one.start, "end": one.end, "kind": ""} for one in example.labels]
        assert row["token_flags"] == [bool(example.labels) and j < 2 for j in range(len(words))]
        assert row["tokens"] == words
        assert row["R_response"] == [k / 4] * len(words)
        assert row["R_prompt"] == [k / 4] * 4
        assert row["logits"] == row["logprob"] == row["entropy"] == [k] * len(words)
        assert row["rank"] == list(range(len(words)))


@pytest.mark.parametrize("part", [RELEVANCE, READING, PROMPT])
def test_a_row_whose_file_is_gone_is_named(part: str, tmp_path: Path) -> None:
    store = store_of(tmp_path, ROWS, [READING, PROMPT])
    store.path(ROWS[2], part).unlink()
    with pytest.warns(LRP4RAGWarning, match=f"1 of 4 responses have no file of {part}.*: {ROWS[2].id}$"):
        exported(store)
    store.log_failures({ROWS[2].id: "it is too long"})  # which is known
    exported(store)


@pytest.mark.parametrize("at_once", [1, 2, 256])
def test_parts_that_rows_lack_are_null(at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first rows lack them, and later batches do not."""
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    bare = replace(ROWS[0], labels=None, generator=None)
    faithful = replace(ROWS[1], labels=())
    store = store_of(tmp_path, [bare, faithful])
    store.add_examples(ROWS[2:])
    fill(store, ROWS[2], [READING], 3.0)
    fill(store, ROWS[3], [PROMPT], 4.0)
    with pytest.warns(LRP4RAGWarning, match="responses have no file of"):
        rows = exported(store)
    names = ("logprob", "rank", "R_prompt")
    assert [[row[name] is None for name in names] for row in rows] == [
        [True] * 3,
        [True] * 3,
        [False, False, True],
        [True, True, False],
    ]
    assert [row["labels"] for row in rows[:3]] == [None, [], []]
    assert rows[3]["labels"] == [{"start": 0, "end": 9, "kind": ""}]
    assert [row["generator"] for row in rows] == [None, "g1", "g1", "g1"]
    assert rows[0]["token_flags"] is None
    assert rows[0]["hallucinated"] is None


def test_nothing_to_export(tmp_path: Path) -> None:
    store_of(tmp_path / "s", [])
    with pytest.raises(InputError, match="holds no relevance"):
        export(tmp_path / "s", tmp_path / "t.parquet")


def test_without_pyarrow_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    store = store_of(tmp_path, ROWS[:1])
    with pytest.raises(LRP4RAGError, match=r"pip install 'lrp4rag\[parquet\]'"):
        export(store.folder, tmp_path / "t.parquet")
