"""Results are computed once, and come back from JSON as they were."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.cache import Cache, described
from experiments.records import UNREADABLE, from_json, to_json
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.training.folds import ONCE
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from tests.hostile.damage import NO_RECORD, PLACES, put

computed: list[int] = []


def square(number: int, label: str = "") -> NDArray[np.float64]:
    computed.append(number)
    if number < 0:
        raise InputError("no")
    return np.array([number**2 / 3])


@pytest.fixture(autouse=True)
def _forget():
    computed.clear()


def squares(cache: Cache, *numbers: int) -> list[list[float]]:
    calls = [(number, str(k)) for k, number in enumerate(numbers)]
    return [value.tolist() for value in cache.map(square, calls, len(calls), "squares", ignore=("label",))]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_result_is_computed_once(jobs: int, tmp_path: Path) -> None:
    with parallel_config(backend="threading"):
        cache = Cache.open(tmp_path / "c", jobs)
        assert squares(cache, 3, 1) == [[3.0], [0.3333333]]
        assert sorted(computed) == [1, 3]
        assert squares(Cache.open(tmp_path / "c", jobs), 3, 1, 2) == [[3.0], [0.3333333], [1.333333]]
    assert sorted(computed) == [1, 2, 3]


def test_what_was_done_before_a_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no"):
        squares(Cache.open(tmp_path), 1, -1, 2)
    computed.clear()
    squares(Cache.open(tmp_path), 1)
    assert computed == []


def test_without_a_folder_nothing_is_kept() -> None:
    cache = Cache()
    assert [cache.call(square, 2).tolist(), cache.call(square, 2).tolist()] == [[4 / 3]] * 2
    assert computed == [2, 2]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The file of a result."""
    Cache.open(tmp_path).call(square, 2)
    (path,) = tmp_path.iterdir()
    return path


VALUES = ["[1.0]", '{"a": 1}', '"text"', "[[1], 2]", '["x"]', "null"]


@pytest.mark.parametrize(
    "content", [*NO_RECORD, b"{}", *(f'{{"value": {value}}}'.encode() for value in VALUES)]
)
def test_a_damaged_file_is_computed_again(content: bytes, kept: Path) -> None:
    kept.write_bytes(content)
    for _ in range(2):
        assert Cache.open(kept.parent).call(square, 2).tolist() == [1.333333]
    assert computed == [2, 2]


@pytest.mark.parametrize("harm", ["edited", "of another"])
def test_a_file_that_is_not_as_it_was_written_is_computed_again(harm: str, kept: Path) -> None:
    content = kept.read_text()
    if harm == "edited":
        kept.write_text(content.replace("1.333333", "1.333334"))
    else:
        Cache.open(kept.parent).call(square, 3)
        (other,) = (path for path in kept.parent.iterdir() if path != kept)
        kept.write_bytes(other.read_bytes())
    assert Cache.open(kept.parent).call(square, 2).tolist() == [1.333333]
    assert computed[-1] == 2


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "loop"])
def test_what_is_no_file_does_not_stop_a_result(kind: str, kept: Path) -> None:
    kept.unlink()
    put(kept, kind)
    for _ in range(2):
        assert Cache.open(kept.parent).call(square, 2).tolist() == [1.333333]
    assert computed == [2, 2]
    if kind == "full folder":
        (thesis,) = kept.parent.rglob("thesis.tex")
        assert thesis.read_text() == "years of work"


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


def test_only_equal_arguments_share_a_result() -> None:
    values = [
        *(1, 1.5, "1", None, (1, "1"), {"a": 1}, ONCE, replace(ONCE, seed=1), square, Cache.open),
        *(np.arange(4), np.arange(4.0), np.arange(4).reshape(2, 2)),
        *(make_pipeline(StandardScaler(), LogisticRegression(C=penalty)) for penalty in (1.0, 2.0)),
    ]
    names = [json_hash(described(value)) for value in values]
    assert len(set(names)) == len(values)
    assert json_hash(described(np.arange(8)[::2])) == json_hash(described(np.array([0, 2, 4, 6])))
    with pytest.raises(TypeError):
        json_hash(described(lambda: 1))


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
