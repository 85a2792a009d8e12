"""Measured cells, kept in a file so that nothing is measured twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lrp4rag.errors import InputError
from lrp4rag.files import write_atomically
from lrp4rag.strict_json import read_record

Cell = dict[str, Any]


class OtherSetupError(Exception):
    """A file holds cells of another model, machine or number of threads."""


class Store:
    """Cells by key; with a path, written after each one.

    Raises `InputError` for a file that holds no cells, `OtherSetupError` for another
    setup's.
    """

    def __init__(self, path: Path | None, setup: dict[str, Any]) -> None:
        self._path, self._setup = path, setup
        self._cells: dict[str, Cell] = {}
        if path is not None and path.exists():
            known, self._cells = _read(path)
            if known != setup:
                changed = [key for key in (*setup, *known) if known.get(key) != setup.get(key)]
                raise OtherSetupError(f"{path} was measured with another {', '.join(dict.fromkeys(changed))}")

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def __getitem__(self, key: str) -> Cell:
        return self._cells[key]

    def cell(self, key: str, measure: Callable[[], Cell]) -> Cell:
        """The cell of that key, measured only where it is not known yet."""
        if key not in self._cells:
            self._cells[key] = measure()
            if self._path is not None:
                content = {"setup": self._setup, "cells": self._cells}
                write_atomically(self._path, json.dumps(content, indent=1) + "\n")
        return self._cells[key]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Cell]]:
    """Setup and cells."""
    what = "measured cells"
    content = read_record(path, what)
    setup, cells = content.get("setup"), content.get("cells")
    if not isinstance(setup, dict) or not isinstance(cells, dict):
        raise InputError(f"not {what}: it has no setup and cells", path=path)
    if not all(isinstance(cell, dict) for cell in cells.values()):
        raise InputError(f"not {what}: a cell is no object", path=path)
    return setup, cells
