"""Documents of other libraries as `Source`s, and how these libraries are imported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from numbers import Real
from typing import Any, TypeGuard

from lrp4rag.source import NAMES, Source

IDS = ("id", "source", "file_name", "file_path")
"""The names under which metadata have the document that a passage is from; the first of them counts."""
SCORES = ("score", "relevance_score")
"""The names under which metadata have the score of a retrieval."""


def source_of(text: str, metadata: Mapping[str, Any] | None = None, *, score: object = None) -> Source:
    """Return a passage with the fields of `Source` that its metadata have. Ids that libraries make up tell
    people nothing, and are not taken."""
    fields = metadata or {}
    values = {name: _words(fields.get(name)) for name in NAMES}
    values["id"] = next((id for name in IDS if (id := _words(fields.get(name)))), None)
    numbers = map(_score, (score, *(fields.get(name) for name in SCORES)))
    return Source(text, **values, score=next((number for number in numbers if number is not None), None))


def _score(value: object) -> float | None:
    """Return a score; None for anything but a finite number: vectors of zeros have a similarity of NaN."""
    try:
        number = float(value) if _is_number(value) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _words(value: object) -> str | None:
    """Return a name, a number or a date as text; None for anything else."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, str) or _is_number(value) else None


def _is_number(value: object) -> TypeGuard[Real]:
    return isinstance(value, Real) and not isinstance(value, bool)


@contextmanager
def library(name: str, extra: str) -> Iterator[None]:
    """Let the block import the package `name`, which our `extra` installs. Raises `ImportError` that says so
    where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if name.partition(".")[0] != (error.name or "").partition(".")[0]:
            raise
        raise ImportError(
            f"this adapter needs {name}: pip install 'lrp4rag[{extra}]'", name=error.name
        ) from error
