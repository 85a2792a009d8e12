"""Invariant 6: resampling against values worked out by hand, identity, and what reveals a length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.lrp import resample
from lrp4rag.lrp.resampling import MODES, resampling_matrix

modes = pytest.mark.parametrize("mode", MODES)
LENGTH = st.integers(1, 250)


# Where the vector shrinks, all modes are the paper's eqs. 7 and 8.
SHRINKING = [
    ([1, 2, 3, 4], 2, [1.5, 3.5]),
    ([1, 2, 3, 4, 5], 2, [1.5, 4]),  # 0..2 and 2..5
    ([1, 2, 3, 4, 5], 3, [1, 2.5, 4.5]),  # 0..1, 1..3, 3..5
    ([7], 1, [7]),
]
GROWING = [
    # Bin centres in the old vector: -0.25, 0.25, 0.75, 1.25; beyond the ends the end value holds.
    ("interpolate", [1, 3], 4, [1, 1.5, 2.5, 3]),
    ("interpolate", [1, 3], 3, [1, 2, 3]),  # -1/6, 1/2, 7/6
    ("interpolate", [5], 3, [5, 5, 5]),
    ("pad_last", [1, 3], 4, [1, 3, 3, 3]),
    ("pad_last", [5], 3, [5, 5, 5]),
    # Bins 0..0, 0..1, 1..1, 1..2: the first and third are empty.
    ("zeros", [1, 3], 4, [0, 1, 0, 3]),
    ("zeros", [1, 3], 3, [0, 1, 3]),  # 0..0, 0..1, 1..2
    ("zeros", [5], 3, [0, 0, 5]),
]


@pytest.mark.parametrize(
    ("mode", "values", "length", "expected"),
    [*((mode, *row) for mode in MODES for row in SHRINKING), *GROWING],
)
def test_values_by_hand(mode: str, values: list[float], length: int, expected: list[float]) -> None:
    np.testing.assert_allclose(resample(values, length, mode), expected, rtol=1e-15)


def written_out(values: np.ndarray, new: int, mode: str) -> list[float]:
    """Eqs. 7 and 8 element by element, and what each mode does where the vector grows."""
    old = len(values)
    if mode == "interpolate" and old < new:
        centres = [(i + 0.5) * old / new - 0.5 for i in range(new)]
        return list(np.interp(centres, np.arange(old), values))
    if mode == "pad_last" and old < new:
        return [*values, *[values[-1]] * (new - old)]
    bins = [values[i * old // new : (i + 1) * old // new] for i in range(new)]
    return [float(np.mean(part)) if len(part) else 0.0 for part in bins]


@given(old=LENGTH, new=LENGTH, mode=st.sampled_from(MODES))
def test_vectors_are_resampled_as_by_the_matrix_whose_rows_are_means(old: int, new: int, mode: str) -> None:
    """Without building it. No element is dropped where a vector shrinks, and the last always counts."""
    values = np.random.default_rng(old * 1000 + new).normal(size=old)
    matrix = resampling_matrix(old, new, mode)
    expected = written_out(values, new, mode)
    np.testing.assert_allclose(resample(values, new, mode), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(matrix @ values, expected, rtol=0, atol=1e-12)
    assert matrix.shape == (new, old)
    assert (matrix >= 0).all()
    sums = matrix.sum(1)
    np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-14)
    assert mode == "zeros" or (sums > 0).all()
    assert matrix[-1, -1] > 0
    if new <= old:
        assert ((matrix > 0).sum(0) == 1).all()
    if old == new:
        np.testing.assert_array_equal(resample(values, new, mode), values)


@given(old=LENGTH, new=LENGTH, value=st.floats(-1e6, 1e6, allow_subnormal=False))
def test_a_constant_vector_does_not_reveal_its_length(old: int, new: int, value: float) -> None:
    np.testing.assert_allclose(resample(np.full(old, value), new), np.full(new, value), rtol=1e-14)


@modes
def test_two_dimensions_are_one_after_the_other(mode: str) -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 9))
    columns = np.stack([resample(row, 4, mode) for row in matrix])
    expected = np.stack([resample(column, 7, mode) for column in columns.T], axis=1)
    np.testing.assert_allclose(resample(matrix, (7, 4), mode), expected, atol=1e-14)
    np.testing.assert_array_equal(resample(matrix, (5, 9), mode), matrix)


@pytest.mark.parametrize(
    ("values", "length", "message"),
    [
        ([1, 2], (1, 1), "cannot resample"),
        ([[1, 2]], 2, "cannot resample"),
        ([[[1]]], (1, 1, 1), "cannot resample"),
        (3, 2, "cannot resample"),
        ([], 3, "positive"),
        ([1, 2], 0, "positive"),
        ([1, 2], -1, "positive"),
        ([[1, 2]], (0, 1), "positive"),
    ],
)
def test_shape_and_lengths_must_agree_and_be_positive(values: object, length: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resample(values, length)


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match=r"'nearest'.*interpolate, pad_last, zeros"):
        resample([1, 2], 3, "nearest")
