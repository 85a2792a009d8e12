"""Arrays of a store: float16 where numbers are real, with hashes that are checked as they are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.tensors import Arrays, read_tensors, require_finite, write_tensors

KIND = "arrays"


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], name: str | None = None) -> None:
    """Write a file, as `name` where one is given. Raises `LRP4RAGError` for NaN or Inf."""
    require_finite(arrays)  # before what is too large for float16 is cut
    write_tensors(path, KIND, {key: _lean(array) for key, array in arrays.items()}, name=name)


def read_arrays(path: Path, names: Collection[str] | None = None, name: str | None = None) -> Arrays:
    """The named arrays (all, where none are named), real ones as float32.

    Raises `InputError` for a missing or damaged file, one that was written as another `name`, or one that
    lacks an array.
    """
    _, arrays = read_tensors(path, KIND, names, name)
    return {key: _wide(array) for key, array in arrays.items()}


def _lean(array: NDArray[Any]) -> NDArray[Any]:
    if not np.issubdtype(array.dtype, np.floating):
        return array
    largest = float(np.finfo(np.float16).max)
    lean: NDArray[np.float16] = np.clip(array, -largest, largest).astype(np.float16)
    return lean


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float32) if array.dtype == np.float16 else array
