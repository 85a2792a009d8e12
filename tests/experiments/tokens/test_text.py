"""Features of words, and of what a sentence rests on, on words and rows that can be compared by eye."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.tokens.pulled import SENTENCE_FEATURES, pulls, sentence_features
from experiments.tokens.response import response_features
from experiments.tokens.table import TokenTable
from experiments.tokens.text import TEXT_FEATURES, passages_of
from lrp4rag.features.record import Record
from tests.experiments.tokens.records import random_record, with_relevance

PROMPT = "Answer. When? The bridge opened in 1874 . Fish is sold nearby ."
RESPONSE = "The bridge opened . Fish swim"
# Relevance of the prompt's words, for each of the two sentences.
FIRST = [1.0, 0, 0, 2, 2, 0, 4, 0, 0, 0, 0, 0, -9]
SECOND = [3.0, 3, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]


def record_of(response: str, *rows: list[float]) -> Record:
    """Of two passages; a token is a word."""
    words = PROMPT.split(" ")
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    record = random_record(len(response.split(" ")), text=response)
    encoded = replace(
        record.encoded,
        text=PROMPT,
        prompt_ids=tuple(range(len(words))),
        prompt_offsets=tuple((int(at), int(at) + len(word)) for at, word in zip(starts, words, strict=True)),
        segments=(0, 1, *[2] * 6, *[3] * 5),
    )
    spans, tokens = np.array([[0, 19], [20, 29]]), np.array([4, 2])
    sentences = {"sentences": np.array(rows), "spans": spans, "tokens": tokens} if rows else {}
    found = with_relevance(record, replace(record.relevance, encoded=encoded))
    return replace(found, signals={**found.signals, **sentences})


def test_each_feature_of_text_by_hand() -> None:
    record = record_of("The Bridge opened in 1901 , - nearby")
    found = {name: feature(record).tolist() for name, feature in TEXT_FEATURES.items()}
    assert found["novel word"] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert found["novel number"] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert found["novel pair"] == [1, 0, 0, 0, 1, 0, 0, 1]
    np.testing.assert_allclose(found["copied run"], [np.log(5)] * 4 + [np.log(2), 0, 0, np.log(2)])
    np.testing.assert_allclose(found["length"], np.log(9))
    assert passages_of(record) == ["The bridge opened in 1874 .", "Fish is sold nearby ."]
    assert all(feature(record_of("- !")).shape == (2,) for feature in TEXT_FEATURES.values())


def test_a_table_may_have_them_and_does_not_by_default() -> None:
    record = record_of("The bridge fell")
    assert TokenTable(("novel word",), (), (1,))(record)[:, 0].tolist() == [0, 0, 1]
    assert not set(TokenTable().features) & set(TEXT_FEATURES)


def test_each_feature_of_sentences_by_hand() -> None:
    first, second = pulls(record_of(RESPONSE, FIRST, SECOND))
    found = {name: (one.of(first), one.of(second)) for name, one in SENTENCE_FEATURES.items()}
    assert found["passages"] == (8 / 9, 2 / 8)
    assert found["overlap"] == (4 / 8, 1.0)
    expected = 1 + (0.25 * np.log(0.25) * 2 + 0.5 * np.log(0.5)) / np.log(11)
    assert found["focus"] == pytest.approx((expected, 1.0))


def test_a_response_has_the_mean_and_the_lowest_of_its_sentences() -> None:
    record = record_of(RESPONSE, FIRST, SECOND)
    found = sentence_features(record)
    assert found["sentences: overlap: mean"] == pytest.approx(0.75)
    assert found["sentences: overlap: lowest"] == 0.5
    assert len(found) == 2 * len(SENTENCE_FEATURES)
    assert found.items() <= response_features(record).items()
    assert sentence_features(record_of(RESPONSE)) == {}  # without rows
    found = sentence_features(record_of(RESPONSE, [-1.0] * 13, SECOND))  # no positive relevance: no support
    assert found["sentences: passages: lowest"] == found["sentences: overlap: lowest"] == 0
