"""Which examples are unlike the training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.domain import FACETS, ranges, unlike
from tests.features.records import random_record


@pytest.fixture(scope="module")
def trained() -> dict[str, Range]:
    return ranges(random_record(length, seed=length) for length in range(20, 60))


def test_training_data_is_like_itself(trained) -> None:
    assert set(trained) == set(FACETS)
    assert not any(unlike(trained, random_record(length, seed=length)) for length in range(20, 60))


def test_ranges_hold_what_was_learned_from_and_more(trained) -> None:
    held = trained["response tokens"]
    assert held.low == pytest.approx(np.quantile(range(20, 60), 0.005) / 2)
    assert held.high == pytest.approx(np.quantile(range(20, 60), 0.995) * 2)


@pytest.mark.parametrize("length", [1, 9, 118, 500])
def test_another_length_is_told_and_decides(trained, length: int) -> None:
    (found,) = unlike(trained, random_record(length))
    assert (found.facet, found.decides) == ("response tokens", True)
    assert f"the response's tokens: {length}, trained on 10.1 to 118" in found.words


def test_a_language_that_takes_more_tokens_is_told(trained) -> None:
    record = random_record(30)
    encoded = replace(record.encoded, response=record.encoded.response.replace(" ", "_"))
    other = replace(record, relevance=replace(record.relevance, encoded=encoded))
    assert [one.facet for one in unlike(trained, other)] == ["tokens per word"]


def test_another_number_of_passages_is_told_and_does_not_decide(trained) -> None:
    record = random_record(30)
    names = ("template", "question", "passage 1")
    encoded = replace(record.encoded, segment_names=names)
    (found,) = unlike(trained, replace(record, relevance=replace(record.relevance, encoded=encoded)))
    assert (found.facet, found.decides) == ("passages", False)


def test_a_facet_that_is_no_longer_known_is_passed_over(trained) -> None:
    assert not unlike({**trained, "colour": Range(low=0, high=1)}, random_record(30))
