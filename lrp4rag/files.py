"""Write files whole or not at all, and clear away what killed processes left."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file under a hidden name beside it, then rename it into place."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files of processes that are gone; those of living ones are left alone."""
    for partial in folder.glob(".*.tmp"):
        owner = partial.name.split(".")[-2]
        if not (owner.isdecimal() and int(owner) != os.getpid() and _alive(int(owner))):
            partial.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
