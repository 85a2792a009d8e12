"""Libraries that an adapter is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
