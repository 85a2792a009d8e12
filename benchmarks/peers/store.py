"""Measured cells, kept in a file so that nothing is measured twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lrp4rag.files import write_atomically

Cell = dict[str, Any]


class OtherSetupError(Exception):
    """A file holds cells of another model, machine or number of threads."""


class Store:
    """Cells by key; with a path, written after each one."""

    def __init__(self, path: Path | None, setup: dict[str, Any]) -> None:
        self._path, self._setup = path, setup
        self._cells: dict[str, Cell] = {}
        if path is not None and path.is_file():
            content = json.loads(path.read_text())
            if content["setup"] != setup:
                changed = [key for key in setup if content["setup"].get(key) != setup[key]]
                raise OtherSetupError(f"{path} was measured with another {', '.join(changed)}")
            self._cells = content["cells"]

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
