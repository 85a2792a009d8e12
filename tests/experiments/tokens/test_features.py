"""Each token feature on a record whose answer is known, and in the range that it states."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tokens.features import TOKEN_FEATURES
from lrp4rag.features.record import Record
from lrp4rag.util.errors import InputError
from tests.experiments.tokens.records import random_record, record_of

# Of three tokens: template, question, passage 1, passage 2; and passages, question, template, response.
BY_SEGMENT = np.array([[1.0, 2, 3], [4, 5, 6], [6, 1, -1], [2, 1, -2]])
ORIGINS = np.array([[1.0, 2, 3], [3, 4, 5], [5, 6, 7], [7, 8, 9]])
RECORD = record_of(
    BY_SEGMENT,
    mean_by_segment=BY_SEGMENT / 2,
    largest_by_segment=BY_SEGMENT,
    cp_by_segment=ORIGINS,
    shares=np.stack([np.zeros((4, 3)), ORIGINS / 10]),
    logits=[10, 10, -0.5],
    logprob=[-1, -2, -3],
    logprob_without_passages=[-4, -2, -2],
    logprob_other_passages=[-3, -1, -3],
    rank=[0, 9, 99],
    entropy=[0.5, 0.25, 0],
    lookback=[[[0.25, 1, 0]], [[0.75, 0, 0]]],
)
EXPECTED = {
    "passages": [8, 2, -3],
    "question": [4, 5, 6],
    "template": [1, 2, 3],
    "leading passage": [6, 1, -1],
    "lead": [4, 0, 1],
    "spread": [(0.75 * np.log(4 / 3) + 0.25 * np.log(4)) / np.log(2), 1, 1],
    "agreement": [1, 1, 1],
    "negative passages": [0, 0, -3],
    "over the mean logit": [4, 1, -1.5],
    "over the largest logit": [0, 0, 0],
    "share of the logit": [0.8, 0.2, -3],
    "cp passages": [0.1, 0.2, 3],
    "cp question": [0.3, 0.4, 5],
    "cp template": [0.5, 0.6, 7],
    "cp response": [0.7, 0.8, 9],
    "state passages": [0.1, 0.2, 0.3],
    "state response": [0.7, 0.8, 0.9],
    "logit": [10, 10, -0.5],
    "log-probability": [-1, -2, -3],
    "entropy": [0.5, 0.25, 0],
    "log rank": [0, np.log(10), np.log(100)],
    "gain": [3, 0, -1],
    "gain over others": [2, -1, 0],
    "mean lookback": [0.5, 0.5, 0],
    "position": [0, 0.5, 1],
}
LIMITS = {"any": (-np.inf, np.inf), "0 to 1": (0, 1), "0 or 1": (0, 1)}
LIMITS |= {"0 or more": (0, np.inf), "0 or less": (-np.inf, 0)}


@pytest.mark.parametrize("name", TOKEN_FEATURES)
def test_by_hand_and_in_the_stated_range(name: str) -> None:
    feature = TOKEN_FEATURES[name]
    np.testing.assert_allclose(feature(RECORD), EXPECTED[name], rtol=1e-6)
    values, (low, high) = feature(random_record()), LIMITS[feature.range]
    assert values.min() >= low
    assert values.max() <= high
    if feature.range == "0 or 1":
        assert set(values) <= {0.0, 1.0}


@pytest.mark.parametrize("passages", [0, 1, 2])
def test_any_number_of_passages(passages: int) -> None:
    record = record_of(np.ones((2 + passages, 3)))
    for feature in TOKEN_FEATURES.values():
        values = feature(record)
        assert values.shape == (3,)
        assert np.isfinite(values).all()


def test_a_missing_signal_is_named() -> None:
    with pytest.raises(InputError, match=r"signal 'by_segment'"):
        TOKEN_FEATURES["passages"](Record.of(RECORD.relevance))
