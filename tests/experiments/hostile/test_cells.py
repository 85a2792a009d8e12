"""What training cached and reads again, when it was damaged, changed, or is something else by now."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.cache import Cache, Cell
from lrp4rag.util.errors import InputError
from tests.hostile.damage import NO_RECORD, PLACES, put

CELL = Cell({"what": "test"}, NDArray[np.float64], lambda: lambda: np.array([1.0, 2.0]))

VALUES = ["[1.0]", '{"a": 1}', '"text"', "[[1], 2]", '["x"]', "null"]
SECONDS = ['"long"', "null", "true", "NaN"]
NO_CELL = [
    *(b"{}", b'{"value": [1.0]}', b'{"seconds": 1}'),
    *(f'{{"value": {value}, "seconds": 1}}'.encode() for value in VALUES),
    *(f'{{"value": [1.0], "seconds": {value}}}'.encode() for value in SECONDS),
]


@pytest.mark.parametrize("content", [*NO_RECORD, *NO_CELL])
def test_a_damaged_cell_is_computed_again(content: bytes, tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    cache.path(CELL).write_bytes(content)
    assert not cache.holds(CELL)
    assert cache.seconds([CELL]) in (0, 1)
    assert cache.all([CELL], "test")[0].tolist() == [1, 2]
    assert Cache.open(tmp_path).read(CELL).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "loop"])
def test_what_is_no_file_does_not_stop_a_cell(kind: str, tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    put(cache.path(CELL), kind)
    assert cache.all([CELL], "test")[0].tolist() == [1, 2]
    assert Cache.open(tmp_path).read(CELL).tolist() == [1, 2]
    (aside,) = [path for path in tmp_path.iterdir() if path.name.endswith(".aside")]
    if kind == "full folder":
        assert (aside / "thesis.tex").read_text() == "years of work"
    cache.forget(CELL)
    assert not Cache.open(tmp_path).holds(CELL)


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_cache_is_a_folder(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cache"
    if kind == "file":
        path.write_text("mine")
    else:
        put(path, kind)
    with pytest.raises(InputError) as caught:
        Cache.open(path)
    assert caught.value.path == path
