"""Pairs that a cross-encoder learns from, and support read by sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lrp4rag.example import Example, Label
from lrp4rag.experiments.systems import entailment
from lrp4rag.experiments.systems.encoders.running import chunks_of
from lrp4rag.experiments.systems.entailment import (
    CHUNK_WORDS,
    nearest_chunks,
    read_windows,
    sentences_with_flags,
    training_pairs,
)
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.training.rows import Rows
from tests.experiments.systems.stand_ins import WordSupport, WordVectors, couples, stand_in, towns
from tests.tiny import bridge_example

ROWS = couples(8)
MADE = training_pairs(ROWS, WordVectors(), 0)
WRONG = "A dragon burned it."


def own_chunks(example: Example) -> list[str]:
    return chunks_of(example.passages, CHUNK_WORDS)


def source_of(chunk: str) -> str:
    (found,) = {example.source for example in ROWS if chunk in own_chunks(example)}
    return found


def test_as_many_supported_as_unsupported_and_half_as_many_again_from_other_sources() -> None:
    # Eight made-up sentences among 32: eight of the 24 others are drawn, four of these are paired once more.
    assert len(MADE) == 8 + 8 + 4
    assert Counter(one.supported for one in MADE) == {True: 8, False: 12}
    assert Counter(one.pair[1] == WRONG for one in MADE) == {True: 8, False: 12}


def test_a_sentence_that_a_span_touches_is_not_supported() -> None:
    for one in MADE[:16]:
        assert one.supported == (one.pair[1] != WRONG)
    assert not any(one.supported for one in MADE[16:])
    assert all(one.pair[1] != WRONG for one in MADE[16:])


def test_the_premise_is_the_nearest_chunk_of_the_own_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each passage is one chunk; by words, the first one is nearest to what is said.
    for one in MADE[:16]:
        if one.pair[1] != WRONG and "bridge" in one.pair[1]:
            assert one.pair[0].startswith("The old bridge")
    monkeypatch.setattr(entailment, "CHUNK_WORDS", 6)
    for one in training_pairs(ROWS, WordVectors(), 0)[:16]:
        if one.supported:
            assert one.pair[0] == one.pair[1]


def test_unrelated_pairs_never_have_a_chunk_of_their_own_source() -> None:
    unrelated = [(source_of(one.pair[0]), one.pair[1]) for one in MADE[16:]]
    supported = {one.pair[1] for one in MADE[:16] if one.supported}
    for source, sentence in unrelated:
        assert sentence in supported
        if any(part.isdigit() for part in sentence.split()):
            (own,) = {example.source for example in ROWS if sentence in example.response}
            assert source != own
    # Any other source can be drawn, and of more than one chunk any.
    many = [one for seed in range(40) for one in training_pairs(ROWS[:6], WordVectors(), seed)[6:]]
    drawn = {one.pair for one in many if one.pair[1] == "The old bridge 0 is red."}
    assert {chunk for chunk, _ in drawn} == {chunk for row in ROWS[2:6] for chunk in own_chunks(row)}


def test_the_seed_decides_what_is_drawn() -> None:
    assert training_pairs(ROWS, WordVectors(), 0) == MADE
    assert training_pairs(ROWS, WordVectors(), 1) != MADE


def test_one_source_alone_has_no_unrelated_pairs() -> None:
    found = training_pairs(ROWS[:2], WordVectors(), 0)
    assert sorted(one.supported for one in found) == [False, True]


def test_without_hallucinated_sentences_there_are_no_pairs() -> None:
    assert training_pairs([replace(one, labels=()) for one in ROWS], WordVectors(), 0) == []


def test_where_most_is_made_up_all_the_others_are_taken() -> None:
    rows = [bridge_example(k, response="It is old and red. It is blue and red.") for k in range(3)]
    rows[0] = replace(rows[0], labels=(Label(0, 38),))
    rows[1] = replace(rows[1], labels=(Label(0, 38),))
    found = training_pairs(rows, WordVectors(), 0)
    assert Counter(one.supported for one in found) == {False: 4 + 1, True: 2}


def test_short_sentences_are_left_out() -> None:
    text = "Three words here. These are four words.\n1.\nAnd these are five words."
    example = bridge_example(response=text, labels=(Label(20, 22), Label(0, 3)))
    assert sentences_with_flags(example) == [
        ("These are four words.", True),
        ("And these are five words.", False),
    ]
    # A span that ends where a sentence begins does not touch it.
    assert not any(flag for _, flag in sentences_with_flags(replace(example, labels=(Label(0, 18),))))


def test_the_nearest_chunk_is_found_among_a_sentences_own() -> None:
    vectors = WordVectors()
    chunks = ["red cats sleep", "grey dogs run far", "red dogs run"]
    found = nearest_chunks(
        ["red dogs run", "red dogs run", "cats"], [chunks, chunks[:2], chunks[1:]], vectors
    )
    assert found[:2] == ["red dogs run", "grey dogs run far"]
    assert found[2] in chunks[1:]
    # Every chunk is embedded once, however many sentences have it.
    assert sorted(vectors.calls[0]) == sorted(chunks)
    assert nearest_chunks([], [], WordVectors()) == []


def test_the_two_numbers_of_given_doubts() -> None:
    assert entailment.support_of(np.array([0.1, 0.7, 0.4])) == pytest.approx([1 - 1.2 / 3, 0.3])
    assert entailment.support_of(np.array([0.25])).tolist() == [0.75, 0.75]


def test_the_two_numbers_of_a_response() -> None:
    # Two passages of 120 words are two chunks; each sentence is worth the better of them.
    passages = [" ".join([f"{words} are here now."] * 30) for words in ("Red cats", "Grey dogs")]
    example = bridge_example(
        passages=passages, response="Red cats are here. Grey dogs burned. Dragons flew by."
    )
    resources = stand_in()
    (found,) = entailment.measure_support(Rows(None, (example,)), resources, resources.model)
    # Support by chunk: 4/4 and 2/4; 0/3 and 2/3; 0/3 and 0/3.
    assert found.numbers == pytest.approx([(1 + 2 / 3 + 0) / 3, 0])
    assert found.suspicion.scores == pytest.approx([0, 1 / 3, 1])
    assert [example.response[start:end] for start, end in found.suspicion.spans] == [
        "Red cats are here.",
        "Grey dogs burned.",
        "Dragons flew by.",
    ]
    assert resources.model.calls == [6]


def test_what_the_encoder_of_ragulator_measured_is_read_again(tmp_path) -> None:
    rows, resources = Rows(None, tuple(towns(4))), Resources(tmp_path)
    first, second = WordSupport(), WordSupport()
    read = read_windows(rows, resources, first)
    found = entailment.measure_support(rows, resources, second)
    assert not second.calls
    assert [one.numbers.tolist() for one in read] == [[0], [1], [0], [1]]
    assert [one.numbers.tolist() for one in found] == [[1, 1], [0.5, 0], [1, 1], [0.5, 0]]
