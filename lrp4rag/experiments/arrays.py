"""Arrays on disk: one safetensors file, float16 where numbers are real, written whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.files import write_atomically


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raises `LRP4RAGError` for NaN or Inf: nothing that is stored has them."""
    from safetensors.numpy import save

    write_atomically(path, save({name: _lean(name, array) for name, array in arrays.items()}))


def read_arrays(path: Path, names: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """The named arrays (all, where none are named), real ones as float32.

    Raises `InputError` for a missing or damaged file, or one that lacks a name.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            found = file.keys()
            missing = set(names or ()) - set(found)
            if missing:
                raise InputError(f"no array '{min(missing)}'", path=path)
            return {name: _wide(file.get_tensor(name)) for name in (found if names is None else names)}
    except OSError as error:
        raise InputError(f"cannot read: {error}", path=path) from error
    except SafetensorError as error:
        raise InputError(f"not a safetensors file: {error}", path=path) from error


def _lean(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if not np.issubdtype(array.dtype, np.floating):
        return np.ascontiguousarray(array)
    if not np.isfinite(array).all():
        raise LRP4RAGError(f"'{name}' has NaN or Inf")
    largest = float(np.finfo(np.float16).max)
    return np.ascontiguousarray(np.clip(array, -largest, largest).astype(np.float16))


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(np.float32) if array.dtype == np.float16 else array
