import json
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.training.cache import Cache, Cell

computed: list[int] = []


def square(number):
    computed.append(number)
    return np.array([number**2 / 3])


def cell(number: int) -> Cell:
    return Cell({"what": "square", "number": number}, NDArray[np.float64], lambda: partial(square, number))


@pytest.fixture(autouse=True)
def _forget():
    computed.clear()


def test_a_cell_is_computed_once(tmp_path):
    cells = [cell(k) for k in (3, 1, 3)]
    first = Cache.open(tmp_path / "c").all(cells, "squares")
    assert [value.tolist() for value in first] == [[3.0], [0.3333333], [3.0]]
    assert sorted(computed) == [1, 3]
    again = Cache.open(tmp_path / "c").all([cell(k) for k in (3, 1, 2)], "squares")
    assert [value.tolist() for value in again] == [[3.0], [0.3333333], [1.333333]]
    assert sorted(computed) == [1, 2, 3]


def test_workers_give_the_same_values(tmp_path):
    cells = [cell(k) for k in range(5)]
    one, two = (Cache.open(tmp_path / str(jobs), jobs).all(cells, "squares") for jobs in (1, 2))
    assert [value.tolist() for value in one] == [value.tolist() for value in two]


def test_what_was_done_before_a_failure_is_kept(tmp_path):
    def fail():
        raise InputError("no")

    cells = [cell(1), Cell({"what": "fails"}, float, lambda: fail), cell(2)]
    with pytest.raises(InputError, match="no"):
        Cache.open(tmp_path).all(cells, "squares")
    assert Cache.open(tmp_path).holds(cells[0])


def test_a_damaged_file_is_computed_again(tmp_path):
    cache, one = Cache.open(tmp_path), cell(2)
    cache.all([one], "squares")
    cache.path(one).write_text('{"value": [1')
    assert not Cache.open(tmp_path).holds(one)
    assert Cache.open(tmp_path).all([one], "squares")[0].tolist() == [1.333333]


def test_an_edited_file_is_computed_again(tmp_path):
    cache, one = Cache.open(tmp_path), cell(2)
    cache.all([one], "squares")
    content = cache.path(one).read_text()
    cache.path(one).write_text(content.replace("1.333333", "1.333334"))
    assert content != cache.path(one).read_text()
    assert not Cache.open(tmp_path).holds(one)


def test_another_cells_file_is_not_read_in_its_place(tmp_path):
    cache, one, other = Cache.open(tmp_path), cell(2), cell(3)
    cache.all([one, other], "squares")
    cache.path(other).write_bytes(cache.path(one).read_bytes())
    again = Cache.open(tmp_path)
    assert again.holds(one)
    assert not again.holds(other)


def test_a_file_says_what_it_is_and_how_long_it_took(tmp_path):
    cache, one = Cache.open(tmp_path), cell(2)
    cache.all([one], "squares")
    record = json.loads(cache.path(one).read_text())
    assert record["key"] == {"what": "square", "number": 2}
    assert cache.seconds([one, one, cell(9)]) == record["seconds"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "c").write_text("")
    with pytest.raises(InputError, match="this is no folder"):
        Cache.open(tmp_path / "c")
