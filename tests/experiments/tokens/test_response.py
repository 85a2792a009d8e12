"""Response features on values whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tokens.features import TOKEN_FEATURES
from experiments.tokens.response import POOLINGS, PROMPT_FEATURES, content_tokens, response_features
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.records import random_record, record_of, without_tokens


def test_poolings() -> None:
    values, record = np.repeat([3.0, -1.0, 5.0], 30), random_record(90)
    expected = {"mean": 7 / 3, "lowest": -1, "highest": 5, "deviation": values.std()}
    assert {name: POOLINGS[name].of(values, record) for name in expected} == pytest.approx(expected)
    record = random_record(9, text="The bridge is red . It is very old")
    values = np.array([9.0, 1, 9, 3, 9, -6, -6, -6, 5])
    assert content_tokens(record).tolist() == [False, True, False, True, False, False, False, False, True]
    assert POOLINGS["content"].of(values, record) == 3
    assert POOLINGS["worst sentence"].of(values, record) == pytest.approx(-13 / 4)
    assert POOLINGS["content"].of(np.array([1.0, 3]), random_record(2, text=". .")) == 2


@pytest.mark.parametrize(
    ("relevance", "concentration", "gini", "top"),
    [
        ([1, 0, 0, 0], 1, 0.75, 1),
        ([2, 2, 2, 2], 0, 0, 1),
        ([-1, -1, -1, -1], 0, 0, 1),  # nothing is positive: no token stands out
        ([3, 1, -5, 0], 1 + (0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(4), 0.625, 1),
        (np.ones(40), 0, 0, 0.25),
        ([5], 1, 0, 1),
        ([], 0, 0, 0),
    ],
)
def test_how_relevance_is_spread(relevance, concentration: float, gini: float, top: float) -> None:
    values = np.array(relevance, dtype=float)
    expected = {"concentration": concentration, "gini": gini, "top mass": top}
    for name, value in expected.items():
        assert PROMPT_FEATURES[name].of(values) == pytest.approx(value, abs=1e-12)


def test_of_the_passages_tokens_only() -> None:
    record = record_of(np.ones((4, 2)), prompt=[100, -100, 2, -0.5])
    assert PROMPT_FEATURES["positive"](record) == 2
    assert PROMPT_FEATURES["negative"](record) == -0.5


def test_every_feature_has_a_number() -> None:
    found = response_features(random_record())
    assert len(found) == (len(TOKEN_FEATURES) - 1) * len(POOLINGS) + len(PROMPT_FEATURES)
    assert np.isfinite(list(found.values())).all()
    assert found["passages: mean"] == pytest.approx(TOKEN_FEATURES["passages"](random_record()).mean())


def test_what_a_record_lacks() -> None:
    record = record_of(np.ones((4, 2)))
    assert not any(name.startswith("R_prompt") for name in response_features(record))
    with pytest.raises(InputError, match="'gini' needs R_prompt"):
        PROMPT_FEATURES["gini"](record)
    with pytest.raises(InputError, match="without tokens"):
        response_features(without_tokens(record))
