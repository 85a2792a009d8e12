"""What a sentence rests on, on rows that can be checked by eye."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.features.pulled import SENTENCE_FEATURES, pulls, sentence_features
from lrp4rag.features.record import Record
from lrp4rag.features.response import response_features
from tests.features.test_text import record_of

RESPONSE = "The bridge opened . Fish swim"


def pulled(*rows: list[float]) -> Record:
    """The prompt is: Answer. When? | The bridge opened in 1874 . | Fish is sold nearby ."""
    record = record_of(RESPONSE)
    spans = np.array([[0, 19], [20, 29]])
    arrays = {"sentences": np.array(rows), "spans": spans, "tokens": np.array([4, 2])}
    return replace(record, sentences=arrays)


FIRST = [1.0, 0, 0, 2, 2, 0, 4, 0, 0, 0, 0, 0, -9]
SECOND = [3.0, 3, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]


def test_each_feature_by_hand() -> None:
    first, second = pulls(pulled(FIRST, SECOND))
    found = {name: (one.of(first), one.of(second)) for name, one in SENTENCE_FEATURES.items()}
    assert found["passages"] == (8 / 9, 2 / 8)
    assert found["overlap"] == (4 / 8, 1.0)
    expected = 1 + (0.25 * np.log(0.25) * 2 + 0.5 * np.log(0.5)) / np.log(11)
    assert found["focus"] == pytest.approx((expected, 1.0))


def test_a_response_has_the_mean_and_the_lowest() -> None:
    record = pulled(FIRST, SECOND)
    found = sentence_features(record)
    assert found["sentences: overlap: mean"] == pytest.approx(0.75)
    assert found["sentences: overlap: lowest"] == 0.5
    assert len(found) == 2 * len(SENTENCE_FEATURES)
    assert found.items() <= response_features(record).items()


def test_without_rows_there_are_none() -> None:
    assert sentence_features(record_of(RESPONSE)) == {}


def test_no_positive_relevance_is_no_support() -> None:
    found = sentence_features(pulled([-1.0] * 13, SECOND))
    assert found["sentences: passages: lowest"] == found["sentences: overlap: lowest"] == 0
