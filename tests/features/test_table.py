"""The token table: its columns, their names, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.features.table import TokenTable
from lrp4rag.features.tokens import PROFILES, TOKEN_FEATURES
from lrp4rag.features.units import smoothed
from tests.features.records import HEADS, LAYERS, ORIGINS, random_record


def test_columns_are_the_features_by_window_then_the_profiles() -> None:
    record, table = random_record(), TokenTable()
    values, names = table(record), table.columns(record)
    layers = -(-LAYERS // 3)
    assert values.shape == (30, 3 * len(TOKEN_FEATURES) + LAYERS * HEADS + 2 * layers * ORIGINS)
    assert len(names) == len(set(names)) == values.shape[1]
    column = dict(zip(names, values.T, strict=True))
    passages = TOKEN_FEATURES["passages"](record)
    np.testing.assert_allclose(column["passages"], passages, rtol=1e-6)
    np.testing.assert_allclose(column["passages, 17 tokens"], smoothed(passages, 17), rtol=1e-5)
    head = smoothed(record["lookback"][1, 2], 9)
    np.testing.assert_allclose(column[f"lookback {HEADS + 2}"], head, rtol=1e-5)


def test_profiles_have_every_third_layer_and_the_last() -> None:
    record = random_record()
    expected = record["shares"][[1, 4]].reshape(-1, 30)
    np.testing.assert_array_equal(PROFILES["shares"](record), expected)
    np.testing.assert_allclose(PROFILES["norms"](record), np.log1p(record["norms"][[1, 4]]).reshape(-1, 30))


def test_fewer_columns() -> None:
    table = TokenTable(("passages", "gain"), (), (1,))
    assert table(random_record()).shape == (30, 2)
    assert table.columns(random_record()) == ["passages", "gain"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": ("nothing",)}, "unknown token feature 'nothing'; choose from passages"),
        ({"profiles": ("nothing",)}, "choose from lookback"),
        ({"windows": (4,)}, "odd"),
        ({"profile_window": 0}, "odd"),
    ],
)
def test_bad_columns_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TokenTable(**options)


def test_smoothing_is_a_mean_of_neighbours_on_the_last_axis() -> None:
    values = np.random.default_rng(0).normal(size=(2, 7))
    expected = [[row[max(k - 2, 0) : k + 3].mean() for k in range(7)] for row in values]
    np.testing.assert_allclose(smoothed(values, 5), expected)
    np.testing.assert_allclose(smoothed(values, 1), values)
    np.testing.assert_allclose(smoothed(values[0], 99), np.full(7, values[0].mean()))
