"""A store as one Parquet table, for pandas, polars or duckdb."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE
from lrp4rag.training.rows import token_flags
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning
from lrp4rag.util.files import written_atomically
from lrp4rag.util.progress import track
from lrp4rag.util.text import one_line

TEXTS = ("id", "source", "generator", "question", "prompt", "response")
PER_TOKEN = ("logprob", "entropy", "rank")
"""Arrays of a plain pass that are columns."""
ROWS_AT_ONCE = 256
SHOWN = 5
"""Rows that a warning names."""


def export(folder: str | Path, out: Path) -> int:
    """Write one row for each response whose relevance is stored; return how many.

    A missing value is null; a warning names rows that lack a part which others have. Raises `InputError` for
    a damaged file and where `out` is not a regular file, and `LRP4RAGError` without pyarrow.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise LRP4RAGError("export needs pyarrow: pip install 'lrp4rag[parquet]'") from error
    store = Store.existing(folder)
    every = store.examples()
    examples = [example for example in every if store.has(example)]
    if not examples:
        raise InputError("this store holds no relevance", path=folder)
    _warn_of_missing(store, every)
    schema = _schema(pa)
    with (
        written_atomically(out) as stream,
        parquet.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        rows = (_row(store, example) for example in track(examples, len(examples), "exporting"))
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    return len(examples)


def _warn_of_missing(store: Store, examples: Sequence[Example]) -> None:
    """Name the rows that lack a part which others have: its file may be gone. Failures are known."""
    failed = store.failures()
    known = [example for example in examples if example.id not in failed]
    for part in (RELEVANCE, READING, PROMPT):
        ids = [one_line(one.id, 60) for one in known if not store.has(one, part)]
        if 0 < len(ids) < len(known):
            more = ", ..." if len(ids) > SHOWN else ""
            warnings.warn(
                f"{len(ids)} of {len(known)} responses have no file of {part}, and "
                f"{'are no rows' if part == RELEVANCE else 'are null in its columns'}; run lrp4rag extract "
                f"again: {', '.join(ids[:SHOWN])}{more}",
                LRP4RAGWarning,
                stacklevel=3,
            )


def _schema(pa: Any) -> Any:
    """Give the type of every column, also of those that the first rows lack."""
    label = pa.struct([("start", pa.int64()), ("end", pa.int64()), ("kind", pa.string())])
    reals = pa.list_(pa.float32())
    columns = {
        **dict.fromkeys(("id", "key", *TEXTS[1:]), pa.string()),
        "hallucinated": pa.bool_(),
        "labels": pa.list_(label),
        "token_flags": pa.list_(pa.bool_()),
        "tokens": pa.list_(pa.string()),
        **dict.fromkeys(("R_response", "R_prompt", "logits", *PER_TOKEN), reals),
        "rank": pa.list_(pa.int32()),
    }
    return pa.schema(list(columns.items()))


def _row(store: Store, example: Example) -> dict[str, Any]:
    relevance = store.read(example)
    row: dict[str, Any] = {
        **{name: getattr(example, name) for name in TEXTS},
        "key": key_of(example),
        "hallucinated": example.hallucinated,
        "tokens": relevance.response_tokens,
        "R_response": relevance.response,
        "R_prompt": relevance.prompt,
        "logits": relevance.logits,
    }
    if example.labels is not None:
        row["labels"] = [
            {"start": label.start, "end": label.end, "kind": label.kind} for label in example.labels
        ]
        row["token_flags"] = token_flags(example, relevance.encoded)
    if store.has(example, READING):
        row |= store.arrays(example, READING, PER_TOKEN)
    return row
