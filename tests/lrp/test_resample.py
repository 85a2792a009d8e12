"""Invariant 6: resampling against values worked out by hand, identity, and what reveals a length."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.lrp import resample
from lrp4rag.lrp.resample import MODES, resampling_matrix

modes = pytest.mark.parametrize("mode", MODES)
PAIRS = [(old, new) for old in (1, 2, 3, 7, 10, 59, 220) for new in (1, 2, 3, 7, 30, 100, 220)]


@modes
@pytest.mark.parametrize(
    ("values", "length", "expected"),
    [
        ([1, 2, 3, 4], 2, [1.5, 3.5]),
        ([1, 2, 3, 4, 5], 2, [1.5, 4]),  # 0..2 and 2..5
        ([1, 2, 3, 4, 5], 3, [1, 2.5, 4.5]),  # 0..1, 1..3, 3..5
        ([1, 2, 3, 4, 5], 1, [3]),
        ([7], 1, [7]),
    ],
)
def test_means_of_bins(values: list[float], length: int, expected: list[float], mode: str) -> None:
    """Where the vector shrinks, all modes are the paper's eqs. 7 and 8."""
    np.testing.assert_allclose(resample(values, length, mode), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("mode", "values", "length", "expected"),
    [
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
    ],
)
def test_growing(mode: str, values: list[float], length: int, expected: list[float]) -> None:
    np.testing.assert_allclose(resample(values, length, mode), expected, rtol=1e-15)


def test_the_default_mode_interpolates() -> None:
    np.testing.assert_array_equal(resample([1, 3], 4), resample([1, 3], 4, "interpolate"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("interpolate", [[1.5, 3.5], [3.5, 5.5], [5.5, 7.5]]),
        ("pad_last", [[1.5, 3.5], [5.5, 7.5], [5.5, 7.5]]),
        ("zeros", [[0, 0], [1.5, 3.5], [5.5, 7.5]]),
    ],
)
def test_two_dimensions(mode: str, expected: list[list[float]]) -> None:
    """Two rows grow to three, four columns shrink to two."""
    actual = resample([[1, 2, 3, 4], [5, 6, 7, 8]], (3, 2), mode)
    np.testing.assert_allclose(actual, expected, rtol=1e-15)


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


@modes
@pytest.mark.parametrize(("old", "new"), [*PAIRS, (188, 220), (458, 64), (200, 500), (13, 16)])
def test_the_matrix_and_the_vector_agree(old: int, new: int, mode: str) -> None:
    """Vectors are resampled without building the matrix."""
    values = np.random.default_rng(old * 1000 + new).normal(size=old)
    expected = written_out(values, new, mode)
    np.testing.assert_allclose(resample(values, new, mode), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(resampling_matrix(old, new, mode) @ values, expected, rtol=0, atol=1e-12)


@modes
def test_two_dimensions_are_one_after_the_other(mode: str) -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 9))
    columns = np.stack([resample(row, 4, mode) for row in matrix])
    expected = np.stack([resample(column, 7, mode) for column in columns.T], axis=1)
    np.testing.assert_allclose(resample(matrix, (7, 4), mode), expected, atol=1e-14)


@modes
@pytest.mark.parametrize("length", [1, 2, 5, 220])
def test_the_same_length_changes_nothing(mode: str, length: int) -> None:
    values = np.random.default_rng(0).normal(size=(length, length))
    np.testing.assert_array_equal(resample(values[0], length, mode), values[0])
    np.testing.assert_array_equal(resample(values, (length, length), mode), values)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_constant_vector_does_not_reveal_its_length(old: int, new: int) -> None:
    np.testing.assert_allclose(resample(np.full(old, 2.5), new), np.full(new, 2.5), rtol=1e-14)


def test_zeros_reveal_the_length() -> None:
    """What the mode is kept for: with it, the number of zeros tells how long the response was."""
    for old in (10, 50, 150):
        assert np.count_nonzero(resample(np.ones(old), 220, "zeros")) == old


@modes
def test_no_element_is_dropped_where_the_vector_shrinks(mode: str) -> None:
    """A ratio in floating point loses the last element for one pair of lengths in twenty."""
    for old in range(1, 61):
        for new in range(1, old + 1):
            matrix = resampling_matrix(old, new, mode)
            assert ((matrix > 0).sum(0) == 1).all(), (old, new)
            np.testing.assert_allclose(matrix.sum(1), 1, rtol=1e-14)


@modes
def test_the_last_element_always_counts(mode: str) -> None:
    for old in range(1, 61):
        for new in range(1, 61):
            assert resampling_matrix(old, new, mode)[-1, -1] > 0, (old, new)


@modes
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_rows_are_means(mode: str, old: int, new: int) -> None:
    matrix = resampling_matrix(old, new, mode)
    assert matrix.shape == (new, old)
    assert (matrix >= 0).all()
    sums = matrix.sum(1)
    np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-14)
    if mode != "zeros":
        assert (sums > 0).all()


@pytest.mark.parametrize(
    ("values", "length"),
    [([1, 2], (1, 1)), ([[1, 2]], 2), ([[[1]]], (1, 1, 1)), (3, 2)],
)
def test_shape_and_lengths_must_agree(values: object, length: object) -> None:
    with pytest.raises(ValueError, match="cannot resample"):
        resample(values, length)


@pytest.mark.parametrize(("values", "length"), [([], 3), ([1, 2], 0), ([1, 2], -1), ([[1, 2]], (0, 1))])
def test_lengths_must_be_positive(values: object, length: object) -> None:
    with pytest.raises(ValueError, match="positive"):
        resample(values, length)


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match=r"'nearest'.*interpolate, pad_last, zeros"):
        resample([1, 2], 3, "nearest")
