"""Labelled data that comes with the package, by the name that `lrp4rag train --more` knows it by."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
SETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.jsonl")))


def set_path(given: Path) -> Path:
    """Return the file of a set, where its name is given and no file is there by that name; else the same
    path."""
    return _FOLDER / f"{given}.jsonl" if str(given) in SETS and not given.exists() else given
