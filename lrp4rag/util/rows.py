"""Rows of JSON and Parquet, with errors that name file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lrp4rag.util import strict_json
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.files import is_local

BATCH = 1000
"""Rows of Parquet that are Python's objects at a time."""


def is_parquet(path: str) -> bool:
    """Whether the name, or that of a URL's file, ends in .parquet."""
    return (urlsplit(path).path if "://" in path else path).endswith(".parquet")


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


def parquet_rows(path: Path) -> Iterator[Any]:
    """The rows of a Parquet file. Raises `InputError` without pyarrow, and for what is not such a file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'lrp4rag[parquet]'", path=path) from error
    try:
        for batch in ParquetFile(path if is_local(path) else path.open("rb")).iter_batches(BATCH):
            yield from map(_without_nulls, batch.to_pylist())
    except PermissionError as error:
        raise InputError(f"cannot read: {error.strerror}", path=path) from error
    except (ArrowException, OSError, ValueError) as error:
        raise InputError(f"not a good Parquet file: {first_line(error)}", path=path) from error


def _without_nulls(value: Any) -> Any:
    """Parquet has a null where JSON has no field."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
