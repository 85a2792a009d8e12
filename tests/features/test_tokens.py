"""Each token feature on relevance whose answer is known, and in the range that it states."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.features.record import Record
from lrp4rag.features.tokens import TOKEN_FEATURES
from tests.features.records import random_record, record_of

# Template, question, passage 1, passage 2, of three tokens.
BY_SEGMENT = [[1, 2, 3], [4, 5, 6], [6, 1, -1], [2, 1, -2]]

EXPECTED = {
    "passages": [8, 2, -3],
    "question": [4, 5, 6],
    "template": [1, 2, 3],
    "leading passage": [6, 1, -1],
    "lead": [4, 0, 1],
    "spread": [(0.75 * np.log(4 / 3) + 0.25 * np.log(4)) / np.log(2), 1, 1],
    "agreement": [1, 1, 1],
    "negative passages": [0, 0, -3],
    "share of the logit": [0.8, 0.2, -0.3],
    "position": [0, 0.5, 1],
}


@pytest.mark.parametrize(("name", "expected"), EXPECTED.items())
def test_of_relevance_by_segment(name: str, expected: list[float]) -> None:
    np.testing.assert_allclose(TOKEN_FEATURES[name](record_of(BY_SEGMENT)), expected, rtol=1e-6)


def test_contrasts_subtract_the_same_passages() -> None:
    rows = np.array(BY_SEGMENT, dtype=float)
    record = record_of(rows, mean_by_segment=rows / 2, largest_by_segment=rows)
    np.testing.assert_allclose(TOKEN_FEATURES["over the mean logit"](record), [4, 1, -1.5])
    np.testing.assert_allclose(TOKEN_FEATURES["over the largest logit"](record), 0)


def test_provenance_takes_the_named_origin() -> None:
    cp = np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]])
    shares = np.stack([np.zeros((4, 2)), cp / 10])
    record = record_of(np.ones((4, 2)), cp_by_segment=cp, shares=shares, logits=[10.0, -0.5])
    for row, name in enumerate(("cp passages", "cp question", "cp template", "cp response")):
        np.testing.assert_allclose(TOKEN_FEATURES[name](record), cp[row] / [10, 1])
    np.testing.assert_allclose(TOKEN_FEATURES["state passages"](record), [0.1, 0.2])
    np.testing.assert_allclose(TOKEN_FEATURES["state response"](record), [0.7, 0.8])


def test_likelihoods() -> None:
    record = record_of(
        np.ones((4, 2)),
        logprob=[-1.0, -2],
        logprob_without_passages=[-4.0, -2],
        logprob_other_passages=[-3.0, -1],
        rank=[0, 9],
        entropy=[0.5, 0.25],
        lookback=np.array([[[0.25, 1.0]], [[0.75, 0.0]]]),
    )
    expected = {
        "logit": [10, 10],
        "log-probability": [-1, -2],
        "gain": [3, 0],
        "gain over others": [2, -1],
        "log rank": [0, np.log(10)],
        "entropy": [0.5, 0.25],
        "mean lookback": [0.5, 0.5],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(TOKEN_FEATURES[name](record), values)


@pytest.mark.parametrize("passages", [0, 1, 2])
def test_any_number_of_passages(passages: int) -> None:
    record = record_of(np.ones((2 + passages, 3)))
    for feature in TOKEN_FEATURES.values():
        values = feature(record)
        assert values.shape == (3,)
        assert np.isfinite(values).all()


LIMITS = {"any": (-np.inf, np.inf), "0 to 1": (0, 1), "0 or 1": (0, 1)}
LIMITS |= {"0 or more": (0, np.inf), "0 or less": (-np.inf, 0)}


@pytest.mark.parametrize("name", TOKEN_FEATURES)
def test_values_keep_to_the_stated_range(name: str) -> None:
    feature = TOKEN_FEATURES[name]
    values, (low, high) = feature(random_record()), LIMITS[feature.range]
    assert values.min() >= low
    assert values.max() <= high
    if feature.range == "0 or 1":
        assert set(values) <= {0.0, 1.0}


def test_a_missing_signal_is_named() -> None:
    record = Record(record_of(np.ones((4, 2))).relevance, {})
    with pytest.raises(InputError, match=r"signal 'by_segment'.*parts relevance,signals"):
        TOKEN_FEATURES["passages"](record)
