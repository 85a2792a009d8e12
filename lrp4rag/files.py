"""Write files whole or not at all, and clear away what killed processes left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file under a hidden name beside it, then rename it into place."""
    with written_atomically(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written piece by piece; nothing is left where that fails."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """A hidden folder beside it to write into, which takes its place at the end; nothing is left where that
    fails. Raises `OSError` where another process has filled one there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder.parent)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    partial.mkdir()
    try:
        yield partial
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files and folders of processes that are gone; those of living ones are left
    alone."""
    for partial in folder.glob(".*.tmp"):
        owner = partial.name.split(".")[-2]
        if not (owner.isdecimal() and int(owner) != os.getpid() and _alive(int(owner))):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
