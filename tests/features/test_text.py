"""Text features on words that can be compared by eye."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lrp4rag.features.record import Record
from lrp4rag.features.table import TokenTable
from lrp4rag.features.text import TEXT_FEATURES, passages_of
from tests.features.records import random_record

PROMPT = "Answer. When? The bridge opened in 1874 . Fish is sold nearby ."


def record_of(response: str) -> Record:
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
    return replace(record, relevance=replace(record.relevance, encoded=encoded))


def test_passages_are_read_from_the_prompt() -> None:
    assert passages_of(record_of("x")) == ["The bridge opened in 1874 .", "Fish is sold nearby ."]


def test_each_feature_by_hand() -> None:
    record = record_of("The Bridge opened in 1901 , - nearby")
    found = {name: feature(record).tolist() for name, feature in TEXT_FEATURES.items()}
    assert found["novel word"] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert found["novel number"] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert found["novel pair"] == [1, 0, 0, 0, 1, 0, 0, 1]
    np.testing.assert_allclose(found["copied run"], [np.log(5)] * 4 + [np.log(2), 0, 0, np.log(2)])
    np.testing.assert_allclose(found["length"], np.log(9))


def test_a_table_may_have_them_and_does_not_by_default() -> None:
    record = record_of("The bridge fell")
    assert TokenTable(("novel word",), (), (1,))(record)[:, 0].tolist() == [0, 0, 1]
    assert not set(TokenTable().features) & set(TEXT_FEATURES)


def test_a_response_without_words() -> None:
    assert all(feature(record_of("- !")).shape == (2,) for feature in TEXT_FEATURES.values())
