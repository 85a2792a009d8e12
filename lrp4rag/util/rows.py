"""Rows of JSONL and Parquet files, in pieces: what many machines read, and no memory has to hold.

A `Piece` is a part of a file that one task reads; a `Place` is where one row stands, to be read again by
itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from lrp4rag.util import strict_json
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.files import is_local, opened, place_at, read_span

PIECE = 8 * 2**20
"""Bytes of a piece of a JSONL file."""
LARGEST_GROUP = 2**29
"""Bytes of a row group of a Parquet file that workers read."""
BATCH = 1000
"""Rows of Parquet that are Python's objects at a time."""
LONGEST_ROW = 2**28
"""Bytes of a row: more than the longest example has in any spelling."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a file: of JSONL those that begin at bytes `start` to `stop`, of Parquet the row groups so
    numbered.

    `line` is the number of its first row: of JSONL, the file's line.
    """

    path: str
    start: int
    stop: int
    line: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """One row: of JSONL byte `start` and `size` bytes, of Parquet the row group and the row in it. `line` is
    what messages call it."""

    path: str
    start: int
    size: int
    line: int


def is_parquet(path: str) -> bool:
    """Told by the name: of a URL, by that of its file."""
    return (urlsplit(path).path if "://" in path else path).endswith(".parquet")


def require_small_pieces(path: str) -> None:
    """Raise `InputError` for a Parquet file that no machine should read: a worker holds two row groups."""
    if is_parquet(path):
        groups = _parquet(path).metadata
        largest = max((groups.row_group(k).total_byte_size for k in range(groups.num_row_groups)), default=0)
        if largest > LARGEST_GROUP:
            raise InputError(
                f"a row group of {largest / 1e6:,.0f} MB, and workers read at most "
                f"{LARGEST_GROUP / 1e6:,.0f} MB at once; write smaller ones (pyarrow: row_group_size=10000)",
                path=path,
            )


def pieces_of(path: str, size: int = PIECE) -> list[Piece]:
    """All pieces of a file; of JSONL their lines are still to be counted (`numbered`)."""
    if is_parquet(path):
        groups = _parquet(path).metadata
        counts = [groups.row_group(k).num_rows for k in range(groups.num_row_groups)]
        return [Piece(path, k, k + 1, 1 + sum(counts[:k])) for k in range(len(counts))]
    whole = place_at(path).stat().st_size
    return [Piece(path, start, min(start + size, whole)) for start in range(0, whole, size)]


def newlines(piece: Piece) -> int:
    """How many a piece of JSONL has: of them all, `numbered` makes the number of each one's first line."""
    return read_span(piece.path, piece.start, piece.stop).count(b"\n")


def numbered(pieces: Sequence[Piece], counts: Sequence[int]) -> list[Piece]:
    """The pieces of one JSONL file with the number of the line that each begins in."""
    found, line = [], 1
    for piece, count in zip(pieces, counts, strict=True):
        found.append(Piece(piece.path, piece.start, piece.stop, line))
        line += count
    return found


def rows_of(piece: Piece) -> Iterator[tuple[Place, Any]]:
    """The rows of a piece. Raises `InputError` naming file and line for what is no JSON, or no Parquet."""
    return _of_parquet(piece) if is_parquet(piece.path) else _of_jsonl(piece)


def row_at(place: Place) -> Any:
    """One row; raises as `rows_of` does."""
    if is_parquet(place.path):
        with _faults(place.path):
            return _without_nulls(_row_group(place.path, place.start).slice(place.size, 1).to_pylist()[0])
    raw = read_span(place.path, place.start, place.start + place.size)
    return parse_row(_text(raw, place), place.path, place.line)


def parse_row(text: str, path: Any, line: int) -> Any:
    """The JSON value that a text holds; raises `InputError` naming the line of its fault."""
    try:
        return strict_json.parse(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            line += error.lineno - 1
            message = f"invalid JSON at column {error.colno}: {error.msg}"
        else:
            message = f"invalid JSON: {error}"
        raise InputError(message, path=path, line=line) from error


def _of_jsonl(piece: Piece) -> Iterator[tuple[Place, Any]]:
    with opened(piece.path) as stream:
        start, line = piece.start, piece.line
        # A line that begins before the piece is the piece's before it.
        stream.seek(max(start - 1, 0))
        if start:
            before = _line(stream, piece.path, line)
            start, line = start - 1 + len(before), line + (before != b"\n")
        while start < piece.stop:
            raw = _line(stream, piece.path, line)
            place = Place(piece.path, start, len(raw), line)
            text = _text(raw, place)
            if text.strip():
                yield place, parse_row(text, piece.path, line)
            start, line = start + len(raw), line + 1


def _line(stream: BinaryIO, path: str, line: int) -> bytes:
    raw = stream.readline(LONGEST_ROW)
    if len(raw) == LONGEST_ROW:
        raise InputError(f"longer than {LONGEST_ROW:,} bytes", path=path, line=line)
    return raw


def _text(raw: bytes, place: Place) -> str:
    try:
        return raw.removeprefix(_BOM if place.start == 0 else b"").decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        message = f"invalid UTF-8 at byte {error.start} of the line; save the file as UTF-8"
        raise InputError(message, path=place.path, line=place.line) from error


def _of_parquet(piece: Piece) -> Iterator[tuple[Place, Any]]:
    line = piece.line
    file = _parquet(piece.path)
    for group in range(piece.start, piece.stop):
        with _faults(piece.path):
            rows = chain.from_iterable(
                batch.to_pylist() for batch in file.iter_batches(BATCH, row_groups=[group])
            )
            for k, row in enumerate(rows):
                yield Place(piece.path, group, k, line), _without_nulls(row)
                line += 1


def _parquet(path: str) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'lrp4rag[parquet]'", path=path) from error
    place = place_at(path)
    with _faults(path):
        return ParquetFile(place if is_local(place) else place.open("rb"))


@contextmanager
def _faults(path: str) -> Iterator[None]:
    """What pyarrow finds wrong with a file, in one line that names it."""
    from pyarrow import ArrowException

    try:
        yield
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from error
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"not a good Parquet file: {first_line(error)}", path=path) from error


@lru_cache(maxsize=2)
def _row_group(path: str, group: int) -> Any:
    """The last ones read stay: rows of one prompt mostly stand together."""
    return _parquet(path).read_row_group(group)


def _without_nulls(value: Any) -> Any:
    """Parquet has a null where JSON has no field."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
