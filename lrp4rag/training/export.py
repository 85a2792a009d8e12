"""A store as one Parquet table, for pandas, polars or duckdb."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE, matrix_shape
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


@dataclass(frozen=True, slots=True)
class _Extra:
    """A chosen array, flattened in `column`, with its shape in another one."""

    column: str
    part: str
    name: str
    dtype: np.dtype[Any]


def export(folder: str | Path, out: Path, arrays: Sequence[str] = ()) -> int:
    """Write one row for each response whose relevance is stored; return how many.

    `arrays` are further arrays of any part, flattened, with `NAME_shape` beside them; where NAME is a column
    already, the part's name comes before it. A missing value is null; a warning names rows that lack a part
    which others have.
    Raises `InputError` for a name that the store lacks, for a damaged file and where `out` is no plain file,
    and `LRP4RAGError` without pyarrow.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise LRP4RAGError("export needs pyarrow: pip install 'lrp4rag[parquet]'") from error
    store = Store.existing(folder)
    listed = store.examples()
    examples = [example for example in listed if store.has(example)]
    if not examples:
        raise InputError("this store holds no relevance", path=folder)
    extras = _extras(store, examples, arrays, _schema(pa, ()).names)
    _warn_of_missing(store, listed, extras)
    schema = _schema(pa, extras)
    with (
        written_atomically(out) as stream,
        parquet.ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        rows = (_row(store, example, extras) for example in track(examples, len(examples), "exporting"))
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    return len(examples)


def _warn_of_missing(store: Store, examples: Sequence[Example], extras: Sequence[_Extra]) -> None:
    """Name the rows that lack a part which others have: its file may be gone. Failures are known."""
    failed = store.failures()
    known = [example for example in examples if example.id not in failed]
    for part in dict.fromkeys((RELEVANCE, READING, PROMPT, *(extra.part for extra in extras))):
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


def _schema(pa: Any, extras: Sequence[_Extra]) -> Any:
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
    for extra in extras:
        columns[extra.column] = pa.list_(pa.from_numpy_dtype(extra.dtype))
        columns[f"{extra.column}_shape"] = pa.list_(pa.int64())
    return pa.schema(list(columns.items()))


def _extras(
    store: Store, examples: Sequence[Example], names: Sequence[str], taken: Collection[str]
) -> list[_Extra]:
    known: dict[str, _Extra] = {}
    for part in store.parts():
        first = next((example for example in examples if store.has(example, part)), None)
        if part in (RELEVANCE, PROMPT) or matrix_shape(part) or first is None:
            continue
        for name, array in store.arrays(first, part).items():
            column = f"{part}_{name}" if name in taken else name
            known.setdefault(name, _Extra(column, part, name, array.dtype))
    for name in names:
        if name not in known:
            raise InputError(f"no array '{name}' here; there are: {', '.join(sorted(known)) or 'none'}")
    return [known[name] for name in dict.fromkeys(names)]


def _row(store: Store, example: Example, extras: Sequence[_Extra]) -> dict[str, Any]:
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
    for extra in extras:
        if store.has(example, extra.part):
            array = store.arrays(example, extra.part, [extra.name])[extra.name]
            row |= {extra.column: array.ravel(), f"{extra.column}_shape": array.shape}
    return row
