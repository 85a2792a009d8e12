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
"""Under which names metadata have the document that a passage is from; the first that is there."""
SCORES = ("score", "relevance_score")
"""Under which names metadata have the score of a retrieval."""


def source_of(text: str, metadata: Mapping[str, Any] | None = None, *, score: object = None) -> Source:
    """Return a passage with what its metadata say of it, under the names that `Source` has. The ids that
    libraries make tell people nothing, and are not taken."""
    given = metadata or {}
    known = {name: _words(given.get(name)) for name in NAMES}
    known["id"] = next((one for name in IDS if (one := _words(given.get(name)))), None)
    scores = (_score(one) for one in (score, *(given.get(name) for name in SCORES)))
    return Source(text, **known, score=next((one for one in scores if one is not None), None))


def _score(value: object) -> float | None:
    """None for what is no number, NaN included: vectors of zeros have such a similarity."""
    try:
        found = float(value) if _is_number(value) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _words(value: object) -> str | None:
    """Return a name, a number or a date as text; None for anything else."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, str) or _is_number(value) else None


def _is_number(value: object) -> TypeGuard[Real]:
    return isinstance(value, Real) and not isinstance(value, bool)


@contextmanager
def library(name: str, extra: str) -> Iterator[None]:
    """What is imported in it may be of the package `name`, which the `extra` of ours installs; raises
    `ImportError` that says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if name.partition(".")[0] != (error.name or "").partition(".")[0]:
            raise
        raise ImportError(
            f"this adapter needs {name}: pip install 'lrp4rag[{extra}]'", name=error.name
        ) from error
