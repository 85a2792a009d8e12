"""Which examples are unlike the training data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.classifiers.card import Range
from lrp4rag.classifiers.domain import FACETS, ranges, unlike
from tests.features.records import random_record, with_relevance


@pytest.fixture(scope="module")
def trained() -> dict[str, Range]:
    return ranges(random_record(length, seed=length) for length in range(20, 60))


def test_ranges_hold_what_was_learned_from_and_more(trained) -> None:
    assert set(trained) == set(FACETS)
    assert not any(unlike(trained, random_record(length, seed=length)) for length in range(20, 60))
    held = trained["response tokens"]
    assert held.low == pytest.approx(np.quantile(range(20, 60), 0.005) / 4)
    assert held.high == pytest.approx(np.quantile(range(20, 60), 0.995) * 2)


@pytest.mark.parametrize("length", [1, 4, 118, 500])
def test_another_length_is_named_and_decides(trained, length: int) -> None:
    (found,) = unlike(trained, random_record(length))
    assert (found.facet, found.decides) == ("response tokens", True)
    assert f"the response's tokens: {length}, trained on 6 to 117" in found.words


@pytest.mark.parametrize(
    ("facet", "decides", "change"),
    [
        ("tokens per word", True, lambda one: {"response": one.response.replace(" ", "_")}),
        ("passages", False, lambda one: {"segment_names": ("template", "question", "passage 1")}),
    ],
)
def test_another_language_decides_and_another_number_of_passages_does_not(
    trained, facet, decides, change
) -> None:
    record = random_record(30)
    encoded = replace(record.encoded, **change(record.encoded))
    (found,) = unlike(trained, with_relevance(record, replace(record.relevance, encoded=encoded)))
    assert (found.facet, found.decides) == (facet, decides)


def test_a_facet_that_is_no_longer_known_is_passed_over(trained) -> None:
    assert not unlike({**trained, "colour": Range(low=0, high=1)}, random_record(30))


def test_what_is_too_likely_is_told_and_has_a_verdict(trained) -> None:
    """An answer that repeats a passage word for word is likely; one in a strange language is not."""
    value = FACETS["surprise"].of(random_record(30))
    for low, high, decides in ((value * 2, value * 3, False), (value / 3, value / 2, True)):
        (found,) = unlike({"surprise": Range(low=low, high=high)}, random_record(30))
        assert (found.facet, found.decides) == ("surprise", decides)
