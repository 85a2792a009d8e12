"""Arrays on disk: float16 where they are real, whole or not at all, and errors that name the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.training.store import read_arrays, write_arrays

ARRAYS = {
    "wide": np.linspace(-3, 3, 24).reshape(2, 3, 4),
    "single": np.float32([[0.1, -0.2]]).T,
    "ranks": np.array([0, 70_000], dtype=np.int32),
    "turned": np.arange(6.0).reshape(2, 3).T,  # not contiguous
    "none": np.zeros((0, 4)),
}


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, ARRAYS)
    found = read_arrays(path)
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].shape == array.shape
        if name == "ranks":
            assert found[name].dtype == np.int32
            np.testing.assert_array_equal(found[name], array)
        else:
            assert found[name].dtype == np.float32
            np.testing.assert_array_equal(found[name], array.astype(np.float16))
    assert [one.name for one in tmp_path.iterdir()] == ["a.safetensors"]


def test_only_the_named_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, ARRAYS)
    assert set(read_arrays(path, ["ranks", "single"])) == {"ranks", "single"}
    assert read_arrays(path, ()) == {}
    with pytest.raises(InputError, match=r"a\.safetensors: no array 'entropy'"):
        read_arrays(path, ["ranks", "entropy"])


def test_values_beyond_float16_are_its_largest(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"x": np.array([1e6, -1e6, 65504.0])})
    assert read_arrays(tmp_path / "a")["x"].tolist() == [65504.0, -65504.0, 65504.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nothing_that_is_not_finite_is_stored(value: float, tmp_path: Path) -> None:
    with pytest.raises(LRP4RAGError, match="'bad' has NaN or Inf"):
        write_arrays(tmp_path / "a", {"good": np.ones(2), "bad": np.array([0, value])})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no arrays", b"\xff" * 64, "cut"])
def test_a_damaged_file_is_named(content: bytes | str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:-1] if isinstance(content, str) else content)
    with pytest.raises(
        InputError, match=r"a\.safetensors: damaged \(not a safetensors file.*compute it again"
    ):
        read_arrays(path, ())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.safetensors: cannot read"):
        read_arrays(tmp_path / "none.safetensors")


def test_the_same_arrays_are_the_same_bytes(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", ARRAYS, "signals/key")
    write_arrays(tmp_path / "b", dict(reversed(ARRAYS.items())), "signals/key")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_name_that_is_asked_for_must_be_the_one_it_was_written_as(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", ARRAYS, "signals/key")
    assert set(read_arrays(tmp_path / "a", name="signals/key")) == set(ARRAYS)
    assert set(read_arrays(tmp_path / "a")) == set(ARRAYS)
    write_arrays(tmp_path / "b", ARRAYS)
    for path, found in ((tmp_path / "a", "signals/key"), (tmp_path / "b", "None")):
        with pytest.raises(InputError, match=rf"damaged \(it was written as {found}\); run lrp4rag extract"):
            read_arrays(path, (), "signals/other")
