"""Folders of results: written over only where the same command wrote what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import check_folder
from lrp4rag.util.strict_json import read_record

PAGE = "README.md"
_WRITTEN = {".md", ".csv", ".png", ".svg"}


def claim(folder: Path, kind: str, record: str) -> dict[str, Any]:
    """Make the folder where there is none. Returns what the `record` of an earlier run says, {} for none.

    A record is known by its `kind`, or its `command`, which begins with that; commands of research were once
    not below `experiments`. Raises `InputError` where
    nothing can be written, and where there are pages, tables or figures and no record of this command.
    """
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    found = _read(folder / record)
    for name in (kind, kind.replace(" experiments ", " ")):
        if found.get("kind") == name or str(found.get("command", "")).startswith(f"{name} "):
            return found
    others = [entry.name for entry in folder.iterdir() if entry.suffix in _WRITTEN or entry.name == record]
    if others:
        why = f"this folder has files that {kind} did not write ({min(others)}); name another"
        raise InputError(why, path=folder)
    return {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_record(path, "a record")
    except (OSError, InputError):
        return {}
