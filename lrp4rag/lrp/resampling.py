"""Mean resampling to a fixed length, LRP4RAG eqs. 7-9 (arXiv 2408.15533), in one and two dimensions.

Every mode is linear, so a mode is a matrix: resampling a vector is `M x`, a matrix `M_r X M_p^T`,
and pushing the rows of M_p as tangents resamples R* without building it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mode = Literal["interpolate", "pad_last", "zeros"]
MODES: tuple[Mode, ...] = ("interpolate", "pad_last", "zeros")


def resampling_matrix(old: int, new: int, mode: Mode = "interpolate") -> NDArray[np.float64]:
    """Return the (new, old) matrix that resamples a vector of length `old`. Each non-zero row sums to 1.

    Bin i is the mean of elements i * old // new up to (i + 1) * old // new: eqs. 7 and 8 without
    the rounding errors of a floating-point ratio. The modes differ where old < new:

    * `interpolate`: linear interpolation between bin centres; a constant hides its length.
    * `pad_last`: the vector, then its last value repeated (the paper's text); leaks the length.
    * `zeros`: empty bins are 0 (the paper's code); leaks the length. For reproduction only.
    """
    _require(old, new, mode)
    return _rows(np.eye(old), new, mode)


def resample(
    values: ArrayLike, length: int | tuple[int, int], mode: Mode = "interpolate"
) -> NDArray[np.float64]:
    """Resample a vector to `length`, or a matrix to (rows, columns) (eq. 9)."""
    array = np.asarray(values, dtype=np.float64)
    lengths = (length,) if isinstance(length, int) else tuple(length)
    if array.ndim != len(lengths) or array.ndim not in (1, 2):
        raise ValueError(f"cannot resample shape {array.shape} to {lengths}")
    for axis, new in enumerate(lengths):
        _require(array.shape[axis], new, mode)
        array = np.moveaxis(_rows(np.moveaxis(array, axis, 0), new, mode), 0, axis)
    return array


def _rows(array: NDArray[np.float64], new: int, mode: Mode) -> NDArray[np.float64]:
    """Resample the first axis, without the matrix: most of its elements are zero."""
    old = len(array)
    if old < new and mode == "interpolate":
        centres = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
        left = centres.astype(np.intp)
        right = np.minimum(left + 1, old - 1)
        share = (centres - left).reshape(-1, *(1,) * (array.ndim - 1))
        return (1 - share) * array[left] + share * array[right]
    if old < new and mode == "pad_last":
        return array[np.minimum(np.arange(new), old - 1)]
    edges = np.arange(new + 1) * old // new
    counts = np.diff(edges)
    filled = counts > 0
    result = np.zeros((new, *array.shape[1:]))
    sums = np.add.reduceat(array, edges[:-1][filled], axis=0)
    result[filled] = sums / counts[filled].reshape(-1, *(1,) * (array.ndim - 1))
    return result


def _require(old: int, new: int, mode: Mode) -> None:
    if old < 1 or new < 1:
        raise ValueError(f"lengths must be positive, got {old} and {new}")
    if mode not in MODES:
        raise ValueError(f"unknown mode '{mode}'; choose from {', '.join(MODES)}")
