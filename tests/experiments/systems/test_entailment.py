"""Pairs that a cross-encoder learns from, and support read by sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.systems import entailment
from experiments.systems.encoders import chunks_of
from experiments.systems.entailment import (
    CHUNK_WORDS,
    nearest_chunks,
    read_windows,
    sentences_with_flags,
    training_pairs,
)
from experiments.systems.resources import Resources
from lrp4rag.example import Label
from tests.experiments.systems.stand_ins import WordSupport, WordVectors, couples, rows_of, stand_in, towns
from tests.tiny import bridge_example

ROWS = couples(8)
MADE = training_pairs(ROWS, WordVectors(), 0)
WRONG = "A dragon burned it."


def chunks(example):
    return chunks_of(example.passages, CHUNK_WORDS)


def test_as_many_supported_as_unsupported_and_half_as_many_again_from_other_sources():
    # Of 32 sentences a span touches eight: eight of the 24 others are drawn, four of these are paired again.
    assert Counter(supported for _, supported in MADE) == {True: 8, False: 8 + 4}
    assert Counter(text == WRONG for (_, text), _ in MADE) == {True: 8, False: 8 + 4}
    assert all(supported == (text != WRONG) for (_, text), supported in MADE[:16])
    assert not any(supported or text == WRONG for (_, text), supported in MADE[16:])


def test_the_premise_is_the_nearest_chunk_of_the_own_passages(monkeypatch):
    # Each passage is one chunk; by words, the first one is nearest to what is said.
    for (premise, text), _ in MADE[:16]:
        if text != WRONG and "bridge" in text:
            assert premise.startswith("The old bridge")
    monkeypatch.setattr(entailment, "CHUNK_WORDS", 6)
    for (premise, text), supported in training_pairs(ROWS, WordVectors(), 0):
        assert not supported or premise == text


def test_unrelated_pairs_never_have_a_chunk_of_their_own_source():
    drawn = {text for (_, text), supported in MADE[:16] if supported}
    for (chunk, sentence), _ in MADE[16:]:
        (source,) = {example.source for example in ROWS if chunk in chunks(example)}
        assert sentence in drawn
        if any(part.isdigit() for part in sentence.split()):
            (own,) = {example.source for example in ROWS if sentence in example.response}
            assert source != own
    # Any other source can be drawn, and of more than one chunk any.
    many = [one for seed in range(40) for one in training_pairs(ROWS[:6], WordVectors(), seed)[6:]]
    drawn = {chunk for (chunk, text), _ in many if text == "The old bridge 0 is red."}
    assert drawn == {chunk for row in ROWS[2:6] for chunk in chunks(row)}


def test_the_seed_decides_what_is_drawn():
    assert training_pairs(ROWS, WordVectors(), 0) == MADE
    assert training_pairs(ROWS, WordVectors(), 1) != MADE


FEW = [bridge_example(k, response="It is old and red. It is blue and red.") for k in range(3)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (ROWS[:2], {False: 1, True: 1}),  # one source alone has no unrelated pairs
        ([replace(one, labels=()) for one in ROWS], {}),
        # Where most is hallucinated all the others are taken.
        ([*(replace(one, labels=(Label(0, 38),)) for one in FEW[:2]), FEW[2]], {False: 4 + 1, True: 2}),
    ],
    ids=["one source", "nothing hallucinated", "most hallucinated"],
)
def test_pairs_of_few_sentences(rows, expected):
    assert Counter(supported for _, supported in training_pairs(rows, WordVectors(), 0)) == expected


def test_short_sentences_are_left_out():
    text = "Three words here. These are four words.\n1.\nAnd these are five words."
    example = bridge_example(response=text, labels=(Label(20, 22), Label(0, 3)))
    first, second = "These are four words.", "And these are five words."
    assert sentences_with_flags(example) == [(first, True), (second, False)]
    # A span that ends where a sentence begins does not touch it.
    assert not any(flag for _, flag in sentences_with_flags(replace(example, labels=(Label(0, 18),))))


def test_the_nearest_chunk_is_found_among_a_sentences_own():
    vectors = WordVectors()
    texts = ["red cats sleep", "grey dogs run far", "red dogs run"]
    sentences = ["red dogs run", "red dogs run", "cats"]
    found = nearest_chunks(sentences, [texts, texts[:2], texts[1:]], vectors)
    assert found[:2] == ["red dogs run", "grey dogs run far"]
    assert found[2] in texts[1:]
    # Every chunk is embedded once, however many sentences have it.
    assert sorted(vectors.calls[0]) == sorted(texts)
    assert nearest_chunks([], [], WordVectors()) == []


def test_the_two_numbers_of_a_response():
    # Two passages of 120 words are two chunks; each sentence is worth the better of them.
    passages = [" ".join([f"{words} are here now."] * 30) for words in ("Red cats", "Grey dogs")]
    said = ["Red cats are here.", "Grey dogs burned.", "Dragons flew by."]
    example, resources = bridge_example(passages=passages, response=" ".join(said)), stand_in()
    (found,) = entailment.measure_support(rows_of([example]), resources, resources.model)
    # Support by chunk: 4/4 and 2/4; 0/3 and 2/3; 0/3 and 0/3.
    assert found.numbers == pytest.approx([(1 + 2 / 3 + 0) / 3, 0])
    assert found.suspicion.scores == pytest.approx([0, 1 / 3, 1])
    assert [example.response[start:end] for start, end in found.suspicion.spans] == said
    assert resources.model.calls == [6]


def test_windows_run_over_passages_and_are_short():
    sentence = "word " * 49 + "end."
    example = bridge_example(0, passages=[" ".join([sentence] * 3), " ".join([sentence] * 4)])
    assert [
        len(window.split()) for window in chunks_of(["\n".join(example.passages)], entailment.WINDOW_WORDS)
    ] == [200, 150]
    assert entailment.WINDOW_WORDS >= 200


def test_the_encoder_of_ragulator_measures_the_highest_of_the_sentences():
    made = towns(2)
    made[1] = replace(made[0], response="Alpha0 beta0 unknown unheard. Theta0 iota0 kappa0 unheard.")
    model = WordSupport()
    first, second = entailment.measure_group(made, model)
    assert first.numbers.tolist() == [0]
    assert second.suspicion.scores == pytest.approx([1 / 2, 1 / 4])
    assert second.numbers == pytest.approx([1 / 2])
    assert model.calls == [4]  # all fits one window
    assert second.suspicion.spans[1].tolist() == [30, 58]


def test_what_the_encoder_of_ragulator_measured_is_read_again(tmp_path):
    rows, resources = rows_of(towns(4)), Resources(Cache(tmp_path))
    first, second = WordSupport(), WordSupport()
    read = read_windows(rows, resources, first)
    found = entailment.measure_support(rows, resources, second)
    assert not second.calls
    assert [one.numbers.tolist() for one in read] == [[0], [1], [0], [1]]
    assert [one.numbers.tolist() for one in found] == [[1, 1], [0.5, 0], [1, 1], [0.5, 0]]
    assert np.array_equal(entailment.support_of(np.array([0.25])), [0.75, 0.75])
