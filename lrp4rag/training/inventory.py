"""What a store holds, several stores in one, and a store as one Parquet table."""

from __future__ import annotations

import re
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE
from lrp4rag.training.rows import token_flags
from lrp4rag.training.store import MANIFEST, Configuration, Store, discard, is_whole, key_of
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning
from lrp4rag.util.files import place_at, written_atomically
from lrp4rag.util.progress import track
from lrp4rag.util.text import one_line

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why `count` responses failed, in the words of the first one, whose id is `first`."""

    reason: str
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """How a store was made; per part its files, bytes and damaged files; the examples by generator and label.

    `first_damaged` is the path of one, if any. Of the last run, `failed` is how many responses failed and
    `failures` why; None where the log of them is damaged.
    """

    folder: Path
    configuration: Configuration
    examples: int
    sources: int
    generators: dict[str, int]
    hallucinated: dict[str, int]
    files: dict[str, int]
    megabytes: dict[str, float]
    damaged: dict[str, int]
    first_damaged: str | None
    failed: int | None
    failures: list[Reason] | None


def inventory(folder: str | Path) -> Inventory:
    """Read all of a store. Raises `InputError` where there is none, or where its manifest or examples are
    damaged; of a damaged log of failures it warns."""
    store = Store.existing(folder)
    examples = store.examples()
    files = {part: store.files(part) for part in store.parts()}
    paths = [path for part in files for path in files[part]]
    damaged = [path for path in track(paths, len(paths), "verifying") if not is_whole(path)]
    broken = Counter(path.parent.name for path in damaged)
    failures = _failures(store)
    return Inventory(
        folder=store.folder,
        configuration=store.configuration,
        examples=len(examples),
        sources=len({example.source for example in examples}),
        generators=_by_generator(examples),
        hallucinated=_by_generator(example for example in examples if example.labels),
        files={part: len(paths) for part, paths in files.items()},
        megabytes={part: sum(path.stat().st_size for path in paths) / 1e6 for part, paths in files.items()},
        damaged={part: broken[part] for part in files},
        first_damaged=str(damaged[0]) if damaged else None,
        failed=None if failures is None else len(failures),
        failures=None if failures is None else reasons_of(failures),
    )


def _by_generator(examples: Iterable[Example]) -> dict[str, int]:
    return dict(sorted(Counter(example.generator or "unknown" for example in examples).items()))


def reasons_of(failures: Mapping[str, str]) -> list[Reason]:
    """Group failures (id and reason) by reason, most frequent first.

    Reasons that differ in numbers only are one: of a thousand responses that are too long, each has another
    length.
    """
    groups: dict[str, list[str]] = {}
    for id, why in failures.items():
        groups.setdefault(_NUMBER.sub("0", why), []).append(id)
    reasons = [Reason(failures[ids[0]], len(ids), ids[0]) for ids in groups.values()]
    return sorted(reasons, key=lambda reason: -reason.count)


def merge(folders: Sequence[str | Path], out: str | Path) -> int:
    """Copy what `out` lacks or has damaged; returns how many files.

    Where several stores hold a file, the first whole one is taken; of labels, the last one's. Safe to
    interrupt: running it again resumes. Raises `InputError` for stores that differ, and at the end
    `LRP4RAGError` for files that are damaged in all stores that hold them.
    """
    stores = [Store.existing(folder) for folder in folders]
    if any(store.folder.resolve() == place_at(out).resolve() for store in stores):
        raise InputError("the merged store's folder is one of those to merge; name another", path=out)
    # All of this before anything is written.
    for store in stores[1:]:
        stores[0].configuration.require(store.configuration, stores[0].folder / MANIFEST)
    examples = [example for store in stores for example in store.examples()]
    target = Store.open(out, stores[0].configuration)
    target.examples()
    copies: dict[Path, list[Path]] = {}
    for store in (target, *stores):  # what is there and whole stays
        for part in store.parts():
            for path in store.files(part):
                copies.setdefault(target.folder / part / path.name, []).append(path)
    copied, damaged = 0, []
    for destination, paths in track(copies.items(), len(copies), "copying"):
        intact = next((path for path in paths if is_whole(path)), None)
        if intact is None:
            damaged.append(paths[0])
        elif intact != destination:
            _copy(intact, destination)
            copied += 1
    target.add_examples(examples)
    if damaged:
        count = f"{len(damaged)} files are" if len(damaged) > 1 else "1 file is"
        raise LRP4RAGError(
            f"{count} damaged wherever there is one, the first being {damaged[0]}; all others are in {out} "
            f"({copied} files were copied). lrp4rag extract computes anew what is missing"
        )
    return copied


def _copy(source: Path, destination: Path) -> None:
    destination.parent.mkdir(exist_ok=True)
    discard(destination)  # where it is damaged, and may be a link
    with source.open("rb") as opened, written_atomically(destination) as written:
        shutil.copyfileobj(opened, written)


def _failures(store: Store) -> dict[str, str] | None:
    try:
        return store.failures()
    except InputError as error:
        warnings.warn(str(error), LRP4RAGWarning, stacklevel=3)
        return None


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
    listed = store.examples()
    examples = [example for example in listed if store.has(example)]
    if not examples:
        raise InputError("this store holds no relevance", path=folder)
    _warn_of_missing(store, listed)
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
    expected = [example for example in examples if example.id not in failed]
    for part in (RELEVANCE, READING, PROMPT):
        ids = [one_line(example.id, 60) for example in expected if not store.has(example, part)]
        if 0 < len(ids) < len(expected):
            more = ", ..." if len(ids) > SHOWN else ""
            warnings.warn(
                f"{len(ids)} of {len(expected)} responses have no file of {part}, and "
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
