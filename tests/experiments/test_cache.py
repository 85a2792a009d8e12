"""Cells are computed once, and results come back from JSON as they were."""

import json
import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray

from experiments.cache import Cache, Cell
from experiments.records import UNREADABLE, from_json, to_json
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError

computed: list[int] = []


def square(number):
    computed.append(number)
    return np.array([number**2 / 3])


def cell(number: int) -> Cell:
    return Cell({"what": "square", "number": number}, NDArray[np.float64], lambda: partial(square, number))


@pytest.fixture(autouse=True)
def _forget():
    computed.clear()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_is_computed_once(jobs, tmp_path):
    cells = [cell(k) for k in (3, 1, 3)]
    with parallel_config(backend="threading"):
        first = Cache.open(tmp_path / "c", jobs).all(cells, "squares")
        assert [value.tolist() for value in first] == [[3.0], [0.3333333], [3.0]]
        assert sorted(computed) == [1, 3]
        again = Cache.open(tmp_path / "c", jobs).all([cell(k) for k in (3, 1, 2)], "squares")
    assert [value.tolist() for value in again] == [[3.0], [0.3333333], [1.333333]]
    assert sorted(computed) == [1, 2, 3]


def test_what_was_done_before_a_failure_is_kept(tmp_path):
    def fail():
        raise InputError("no")

    cells = [cell(1), Cell({"what": "fails"}, float, lambda: fail), cell(2)]
    with pytest.raises(InputError, match="no"):
        Cache.open(tmp_path).all(cells, "squares")
    assert Cache.open(tmp_path).holds(cells[0])


@pytest.mark.parametrize("harm", ["edited", "of another cell"])
def test_a_file_that_is_not_as_it_was_written_is_computed_again(harm, tmp_path):
    cache, one, other = Cache.open(tmp_path), cell(2), cell(3)
    cache.all([one, other], "squares")
    content = cache.path(one if harm == "edited" else other).read_text()
    cache.path(one).write_text(content.replace("1.333333", "1.333334"))
    again = Cache.open(tmp_path)
    assert again.holds(other)
    assert not again.holds(one)
    assert again.all([one], "squares")[0].tolist() == [1.333333]


def test_a_file_says_what_it_is_and_how_long_it_took(tmp_path):
    cache, one = Cache.open(tmp_path), cell(2)
    cache.all([one], "squares")
    record = json.loads(cache.path(one).read_text())
    assert record["key"] == {"what": "square", "number": 2}
    assert cache.seconds([one, one, cell(9)]) == record["seconds"]
    assert cell(2).name == one.name != cell(3).name


def test_what_reads_cells_counts_what_an_earlier_run_took_for_them(tmp_path):
    parts = [cell(2), cell(3)]
    first = Cache.open(tmp_path)
    first.all(parts[:1], "squares")
    first.write(parts[0], to_json(np.array([1.0])), 40.0)

    def whole(cache: Cache) -> Cell:
        def summed() -> float:
            return float(sum(value.sum() for value in cache.all(parts, "squares")))

        return Cell({"what": "sum"}, float, lambda: summed)

    second = Cache.open(tmp_path)
    assert second.run(whole(second)) == pytest.approx(4.0)
    assert 40 < second.seconds([whole(second)]) < 50  # the other part is in its own time


# Records.


@dataclass(frozen=True, slots=True, eq=False)
class Inner:
    values: NDArray[np.float64]
    flags: NDArray[np.bool_]
    counts: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    kind: Literal["a", "b"]
    missing: Interval | None
    metrics: Metrics
    inner: dict[str, tuple[Inner, ...]]
    pair: tuple[int, float]


def through(kind, value):
    return from_json(kind, json.loads(json.dumps(to_json(value), allow_nan=False)))


def test_a_record_comes_back_as_it_was():
    inner = Inner(np.array([[0.5, np.nan]]), np.array([True, False]), np.array([3, 4]))
    metrics = {"auroc": Interval(value=0.1 + 0.2, low=None, high=1.0)}
    found = through(Outer, Outer("x", "a", None, metrics, {"k": (inner, inner)}, (2, 1 / 3)))
    expected = ("x", "a", None, metrics, (2, 1 / 3))
    assert (found.name, found.kind, found.missing, found.metrics, found.pair) == expected
    for each in found.inner["k"]:
        assert np.array_equal(each.values, inner.values, equal_nan=True)
        assert (each.flags.dtype, each.counts.dtype) == (np.bool_, np.intp)
        assert each.flags.tolist() == [True, False]
        assert each.counts.tolist() == [3, 4]
    outcome = Outcome(np.array([[0.25, 0.75]]), np.array([[False, True]]), ("a", "b"), 3)
    assert to_json(through(Outcome, outcome)) == to_json(outcome)


def test_arrays_keep_seven_digits_and_a_second_pass_changes_nothing():
    values = np.random.default_rng(0).normal(size=200) * 1e-4
    once = through(NDArray[np.float64], values)
    assert np.allclose(once, values, rtol=1e-6, atol=0)
    assert not np.array_equal(once, values)
    assert np.array_equal(through(NDArray[np.float64], once), once)
    assert to_json(math.inf) is to_json(np.float64("nan")) is from_json(float, None) is None


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        *((int, data) for data in ("1", 1.5, True)),
        *((float, data) for data in ("1", [1], True)),
        *((str, data) for data in (1, None)),
        (bool, 1),
        (Literal["a"], "b"),
        *((tuple[int, ...], data) for data in ("12", {"a": 1})),
        (tuple[int, int], [1]),
        *((dict[str, int], data) for data in ([1], {"a": "b"})),
        *((NDArray[np.float64], data) for data in ("12", {"a": 1}, ["x"])),
        (NDArray[np.bool_], {"a": 1}),
        (Inner, {"values": []}),
        (Interval, {"value": "x"}),
    ],
    ids=str,
)
def test_data_of_another_type_is_unreadable(kind, data):
    with pytest.raises(UNREADABLE):
        from_json(kind, data)
