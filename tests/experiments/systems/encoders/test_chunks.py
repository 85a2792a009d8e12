"""Windows of whole sentences."""

from __future__ import annotations

import pytest

from lrp4rag.experiments.systems.encoders.chunks import chunk_spans, chunks_of
from lrp4rag.sentences import split_sentences

TEXT = "The bridge is old. It is red.\n\nNobody knows why it was ever built there. Why? The river is near."


def chunks(words: int) -> list[str]:
    return [TEXT[start:end] for start, end in chunk_spans(TEXT, words)]


def test_whole_sentences_up_to_the_number_of_words() -> None:
    # Sentences of 4, 3, 8, 1 and 4 words.
    assert chunks(7) == [
        "The bridge is old. It is red.",
        "Nobody knows why it was ever built there.",
        "Why? The river is near.",
    ]
    assert chunks(9)[1:] == ["Nobody knows why it was ever built there. Why?", "The river is near."]
    assert chunks(100) == [TEXT]


@pytest.mark.parametrize("words", range(1, 25))
def test_no_chunk_exceeds_the_budget_but_a_sentence_that_does(words: int) -> None:
    sentences = split_sentences(TEXT)
    found = chunk_spans(TEXT, words)
    # Boundaries are those of sentences, and every sentence is in one chunk.
    starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
    assert [sum(start <= one < end for start, end in found) for one in starts] == [1] * 5
    for start, end in found:
        assert start in starts
        assert end in ends
        assert len(TEXT[start:end].split()) <= words or (start, end) in sentences


def test_a_long_sentence_stands_alone() -> None:
    assert chunks(4) == [
        "The bridge is old.",
        "It is red.",
        "Nobody knows why it was ever built there.",
        "Why?",
        "The river is near.",
    ]


def test_chunks_do_not_run_over_the_end_of_a_text() -> None:
    assert chunks_of(["It is old.", " \n", "It is red. Why?"], 50) == ["It is old.", "It is red. Why?"]
    assert chunks_of([], 50) == []
    assert chunk_spans("", 50) == []
