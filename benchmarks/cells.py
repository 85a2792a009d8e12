"""Measured cells, kept in a file so that nothing is measured twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.strict_json import read_record

Cell = dict[str, Any]
WHAT = "measured cells"


class Cells:
    """Cells by key, all measured with one setup; with a path, written after each change.

    Raises `InputError` for a file that holds no cells, or cells of another setup.
    """

    def __init__(self, path: Path | None, setup: dict[str, Any]) -> None:
        self._path, self._setup = path, setup
        self._cells: dict[str, Cell] = {}
        if path is not None and path.exists():
            self._cells = _read(path, setup)

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def __getitem__(self, key: str) -> Cell:
        return self._cells[key]

    def add(self, cells: dict[str, Cell]) -> None:
        self._cells |= cells
        if self._path is not None:
            content = {"setup": self._setup, "cells": self._cells}
            write_atomically(self._path, json.dumps(content, indent=1) + "\n")


def _read(path: Path, setup: dict[str, Any]) -> dict[str, Cell]:
    content = read_record(path, WHAT)
    known, cells = content.get("setup"), content.get("cells")
    if (
        not isinstance(known, dict)
        or not isinstance(cells, dict)
        or any(type(cell) is not dict for cell in cells.values())
    ):
        raise InputError(f"not {WHAT}: it has no setup, or no cells", path=path)
    for name in sorted({*known, *setup}):
        if known.get(name) != setup.get(name):
            why = f"measured with {name} {known.get(name)}, not {setup.get(name)}; name another output"
            raise InputError(why, path=path)
    return cells
