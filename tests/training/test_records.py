import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.experiments.paper.significance import PositionTest
from lrp4rag.training.cache import Cell
from lrp4rag.training.records import from_json, to_json
from lrp4rag.training.validation import Outcome


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
    outer = Outer("x", "a", None, metrics, {"k": (inner, inner)}, (2, 1 / 3))
    found = through(Outer, outer)
    assert (found.name, found.kind, found.missing, found.metrics, found.pair) == (
        "x",
        "a",
        None,
        metrics,
        (2, 1 / 3),
    )
    for each in found.inner["k"]:
        assert np.array_equal(each.values, inner.values, equal_nan=True)
        assert (each.flags.dtype, each.counts.dtype) == (np.bool_, np.intp)
        assert each.flags.tolist() == [True, False]
        assert each.counts.tolist() == [3, 4]


def test_arrays_keep_seven_digits_and_a_second_pass_changes_nothing():
    values = np.random.default_rng(0).normal(size=200) * 1e-4
    once = through(NDArray[np.float64], values)
    assert np.allclose(once, values, rtol=1e-6, atol=0)
    assert not np.array_equal(once, values)
    assert np.array_equal(through(NDArray[np.float64], once), once)


def test_what_is_not_finite_is_none_and_comes_back_as_nan_in_arrays_only():
    assert to_json(math.inf) is None
    assert to_json(np.float64("nan")) is None
    assert np.isnan(from_json(NDArray[np.float64], [None, 1.0])[0])


@pytest.mark.parametrize(
    "value",
    [
        Outcome(np.array([[0.25, 0.75]]), np.array([[False, True]]), ("a", "b"), 3),
        PositionTest(*(np.array([0.1, 0.9]) * k for k in range(6)), 5, 7),
    ],
    ids=["Outcome", "PositionTest"],
)
def test_records_of_other_modules(value):
    found = through(type(value), value)
    assert to_json(found) == to_json(value)
    assert type(found) is type(value)


def test_a_cell_is_named_by_its_key_only():
    one, same = (Cell({"what": "x", "n": 1}, float, lambda: float) for _ in range(2))
    assert one.name == same.name
    assert one.name != Cell({"what": "x", "n": 2}, float, lambda: float).name
