"""Reading DATA once, on all machines: is every row good, and where do those of one prompt stand?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.data import RAGTRUTH_FILES, is_json
from lrp4rag.example import Example
from lrp4rag.guard.cluster.groups import PlacedGroups, by_prompt, examples_at
from lrp4rag.guard.cluster.session import errors_of_workers
from lrp4rag.training.extract import prompt_key
from lrp4rag.training.manifest import dump_examples
from lrp4rag.training.store import key_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import absolute_name, opened, place_at
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.progress import track
from lrp4rag.util.rows import (
    Piece,
    Place,
    is_parquet,
    newlines,
    numbered,
    pieces_of,
    require_small_pieces,
    rows_of,
)
from lrp4rag.util.text import one_line

TASKS = 8
"""Pieces that are read at a time: they wait for disks and networks more than for a core."""
FIRST_LINE = 2**26
"""Bytes of the first row, by which JSONL is told."""
Identities = NDArray[np.uint64]
"""Hashes (n, 2) of ids with what they name, in two halves of 64 bits."""


def files_of(data: str) -> list[str] | None:
    """The JSONL and Parquet files that DATA names: a file, or a folder of them, here or behind a URL, by
    names that processes in any folder understand. None for what can only be read as a whole: standard input,
    a JSON array, a RAGTruth folder.

    Raises `InputError` for a folder without such files, and for what is missing.
    """
    name = data if "://" in data else absolute_name(data)
    place = place_at(name)
    if data == "-" or data.startswith("/dev/"):
        return None
    if place.is_dir():
        names = sorted(str(path) for path in place.iterdir() if path.name.endswith((".jsonl", ".parquet")))
        if {Path(name).name for name in names} >= set(RAGTRUTH_FILES):
            return None
        if not names:
            raise InputError("no .jsonl or .parquet file in this folder", path=data)
        return names
    if not place.exists():
        raise InputError("no such file or directory", path=data)
    return [name] if is_parquet(data) or _is_jsonl(data) else None


def _is_jsonl(path: str) -> bool:
    """Whether the first line that is not empty is an object by itself."""
    with opened(path) as stream:
        first = stream.readline(FIRST_LINE).removeprefix(b"\xef\xbb\xbf")
        while first and not first.strip():
            first = stream.readline(FIRST_LINE)
    return first.lstrip().startswith(b"{") and is_json(first)


def index(
    files: Sequence[str], template: str | None = None, keep: Callable[[bytes, Identities], None] | None = None
) -> PlacedGroups:
    """The places of all rows, grouped by prompt. `keep` is given the examples of one piece after the other,
    as the store writes them, with their identities.

    Memory grows by about 60 bytes a row. Raises `InputError` naming file, line and field for the first row
    that is not good, and for an id that comes twice.
    """
    several, kept = len(files) > 1, keep is not None
    with errors_of_workers():
        pieces = _numbered(files)
        columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _COLUMNS}
        ids: list[Identities] = []
        for piece, found in zip(
            pieces,
            track(_each(read_piece, pieces, template, several, kept), len(pieces), "reading DATA"),
            strict=True,
        ):
            if "error" in found:
                raise InputError(**found["error"])
            # Copies: what Ray hands over keeps all of its object in memory.
            for name in _COLUMNS:
                columns[name].append(found[name].copy())
            columns["file"][-1] = np.full(len(found["start"]), files.index(piece.path), np.int64)
            ids.append(found["ids"].copy())
            if keep is not None:
                keep(found["examples"], found["identities"].copy())
    whole = {name: np.concatenate([np.empty(0, np.int64), *parts]) for name, parts in columns.items()}
    if not len(whole["start"]):
        raise InputError("no examples", path=files[0])
    _refuse_duplicates(ids, pieces, template, several)
    order, starts, after = by_prompt(whole.pop("high"), whole.pop("low"))
    places: dict[str, Any] = {name: whole[name].astype(np.int64) for name in _PLACE}
    return PlacedGroups(
        tuple(files), template, sum(map(len, ids)), **places, order=order, starts=starts, after=after
    )


_PLACE = ("file", "start", "size", "line")
_COLUMNS = (*_PLACE, "high", "low")


def _numbered(files: Sequence[str]) -> list[Piece]:
    """All pieces, those of JSONL with the line that each begins in."""
    found: list[Piece] = []
    for path in files:
        require_small_pieces(path)
        pieces = pieces_of(path)
        found += pieces if is_parquet(path) else numbered(pieces, list(_each(newlines, pieces)))
    return found


def _each(function: Callable[..., Any], pieces: Sequence[Piece], *arguments: Any) -> Iterator[Any]:
    """What a function makes of each piece, in order; a few are computed at a time, wherever there is room."""
    import ray

    remote = ray.remote(num_cpus=0.5, max_retries=5)(function)
    waiting: list[Any] = []
    for piece in pieces:
        waiting.append(remote.remote(piece, *arguments))
        if len(waiting) >= TASKS:
            yield ray.get(waiting.pop(0))
    while waiting:
        yield ray.get(waiting.pop(0))


def read_piece(piece: Piece, template: str | None, several: bool, kept: bool = True) -> dict[str, Any]:
    """Columns of a piece's rows, hashes of its examples' ids, and where they are `kept` their bytes and
    identities; or the `error` of the first row that is not good. Without ids, rows of `several` files are
    told by these."""
    rows: list[tuple[int, ...]] = []
    ids: list[str] = []
    identities: list[str] = []
    lines: list[bytes] = []
    try:
        for place, row in rows_of(piece):
            examples = list(examples_at(place, row, template, several))
            rows.append((0, place.start, place.size, place.line, *_halves(prompt_key(examples[0]))))
            ids += [json_hash(example.id) for example in examples]
            if kept:
                identities += [identity_of(example) for example in examples]
                lines.append(dump_examples(examples))
    except InputError as error:
        where = {"path": error.path, "line": error.line, "field": error.field}
        return {"error": {"message": error.reason, **where}}
    columns = zip(*rows, strict=True) if rows else ((),) * len(_COLUMNS)
    arrays = {
        name: np.array(column, np.uint64 if name in ("high", "low") else np.int64)
        for name, column in zip(_COLUMNS, columns, strict=True)
    }
    return {
        **arrays,
        "ids": hashes(ids),
        "identities": hashes(identities),
        "examples": b"".join(lines),
    }


def identity_of(example: Any) -> str:
    """What tells an example of a store from the others: its id, and the content that names its files."""
    return json_hash([example.id, key_of(example)])


def hashes(given: Sequence[str]) -> Identities:
    """Hexadecimal hashes as numbers: (n, 2)."""
    return np.array([_halves(one) for one in given], np.uint64).reshape(-1, 2)


def _halves(digest: str) -> tuple[int, int]:
    return int(digest[:16], 16), int(digest[16:32], 16)


def _refuse_duplicates(
    ids: Sequence[Identities], pieces: Sequence[Piece], template: str | None, several: bool
) -> None:
    whole = np.concatenate(ids)
    order = np.lexsort((whole[:, 1], whole[:, 0]))  # of equal ones, the first is before
    same = np.flatnonzero((whole[order[1:]] == whole[order[:-1]]).all(1))
    if not len(same):
        return
    ends = np.cumsum([len(part) for part in ids])

    def at(number: int) -> tuple[Place, Example]:
        piece = int(np.searchsorted(ends, number, side="right"))
        stands = (
            (place, example)
            for place, row in rows_of(pieces[piece])
            for example in examples_at(place, row, template, several)
        )
        return next(itertools.islice(stands, number - int(ends[piece] - len(ids[piece])), None))

    again = int(order[same + 1].min())
    (first, _), (second, example) = at(int(order[np.flatnonzero(order == again)[0] - 1])), at(again)
    where = f"line {first.line}" if first.path == second.path else f"{first.path}, line {first.line}"
    message = f"duplicate id '{one_line(example.id, 100)}' (first on {where})"
    raise InputError(message, path=second.path, line=second.line, field="id")
