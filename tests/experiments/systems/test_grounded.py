"""Grounded in Context on cases worked out by hand; no weights are needed."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from experiments.systems.grounded import (
    BUDGET,
    CHUNK_TOKENS,
    CLAIM_OVERLAP,
    CLAIM_TOKENS,
    SPECIAL,
    Chunker,
    aggregated,
    claims_fact,
    measure_group,
    retrieved,
    starts_of,
)
from tests.experiments.systems.stand_ins import WordSupport, WordVectors
from tests.tiny import bridge_example, tiny_tokenizer

THREE = "One two three. Four five six. Seven eight nine."


def word_starts(text):
    """Words count as tokens."""
    return [match.start() for match in re.finditer(r"\S+", text)]


@pytest.mark.parametrize(
    ("text", "longest", "overlap", "expected"),
    [
        # At the coarsest places that do: paragraphs before lines, sentences, clauses and words.
        ("One two. Three four.", 4, 0, ["One two. Three four."]),
        ("a b\nc d\n\ne f", 4, 0, ["a b\nc d", "e f"]),
        ("a b\nc d\ne f", 4, 0, ["a b\nc d", "e f"]),
        ("One two three. Four, five six. Seven.", 4, 0, ["One two three.", "Four, five six. Seven."]),
        ("one two three four, five six", 5, 0, ["one two three four,", "five six"]),
        ("one two three four five", 2, 0, ["one two", "three four", "five"]),
        # What is cut finer than its neighbours is not put together with them.
        ("Ah ah. Go on at it now. Hi.", 3, 0, ["Ah ah.", "Go on at", "it now.", "Hi."]),
        ("  \n one \n ", 1, 0, ["one"]),
        # Pieces overlap by whole parts.
        (THREE, 6, 3, ["One two three. Four five six.", "Four five six. Seven eight nine."]),
        (THREE, 6, 2, ["One two three. Four five six.", "Seven eight nine."]),
        ("a b c d e", 3, 1, ["a b c", "c d e"]),
        ("a b c d e", 2, 5, ["a b", "b c", "c d", "d e"]),
    ],
)
def test_pieces_of_a_text(text, longest, overlap, expected):
    assert [text[start:end] for start, end in Chunker(word_starts, longest, overlap)(text)] == expected


def test_a_long_text_is_covered_by_short_pieces():
    generator = np.random.default_rng(0)
    ends = ["", "", "", ",", ".", ".\n", "\n\n"]
    text = " ".join(f"w{k}{generator.choice(ends)}" for k in range(500))
    spans = Chunker(word_starts, 12, 4)(text)
    assert max(len(text[start:end].split()) for start, end in spans) <= 12
    places = {k for start, end in spans for k in range(start, end)}
    assert {k for k, sign in enumerate(text) if not sign.isspace()} <= places
    shared = [len(text[second[0] : first[1]].split()) for first, second in pairwise(spans)]
    assert 0 < max(shared) <= 4


def test_a_word_that_is_too_long_stays_whole():
    text = "abcdef g h"  # whose letters are tokens
    spans = Chunker(lambda text: range(len(text)), 3)(text)
    assert [text[start:end] for start, end in spans] == ["abcdef", "g h"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The bridge was opened in 1901.", True),
        ("Opened 1901.", True),
        ("Based on the given passages, the bridge was opened in 1901.", True),
        ("Sure! According to passage 2, the bridge is old and narrow.", True),
        ("When was it opened? The bridge opened in 1901.", True),
        ("Here are the parts: stone, mortar and wood.", True),
        ("Based on the given passages:", False),
        ("Here are the steps:", False),
        ("Sure, here are some tips for saving water based on the given passages:", False),
        ("Hello! Sure, of course.", False),
        ("When was the old bridge opened?", False),
        ("Unable to answer based on given passages.", False),
        ("The passages do not mention when the old bridge was opened.", False),
        ("The provided text doesn't give any opening hours.", False),
        ("I hope this helps! Let me know if you need more details.", False),
        ("It is.", False),
        ("1.", False),
    ],
)
def test_only_claims_of_facts_are_kept(text, expected):
    assert claims_fact(text) == expected


def test_as_many_of_the_best_chunks_are_retrieved_as_fit():
    similarity, lengths = np.array([0.1, 0.9, 0.5, 0.8]), np.array([100, 200, 150, 246])
    # 62 + 4 + 200 + 246 = 512: there is no room for the third best.
    assert retrieved(similarity, lengths, 62).tolist() == [1, 3]
    assert retrieved(similarity, lengths, 63).tolist() == [1]
    assert retrieved(similarity, lengths, 62, budget=1000).tolist() == [0, 1, 2, 3]
    assert retrieved(similarity, lengths + 1000, 10).tolist() == [1]  # one at least


@pytest.mark.parametrize(
    ("support", "expected"),
    [
        ([0.9, 0.8, 0.2], [(0.9 + 0.8 + 3 * 0.2) / 5, 0.2]),
        ([0.9, 0.7], [0.8, 0.7]),
        ([0.5], [0.5, 0.5]),
        ([], [1, 1]),
    ],
)
def test_unsupported_claims_weigh_three_times_as_much(support, expected):
    assert aggregated(np.array(support)) == pytest.approx(expected)


def test_where_nothing_is_claimed_nothing_is_unsupported():
    model, example = WordSupport(), bridge_example(response="Unable to answer based on given passages.")
    (found,) = measure_group([example], model, WordVectors())
    assert found.numbers.tolist() == [1, 1]
    assert found.suspicion.spans.tolist() == [[0, 41]]
    assert found.suspicion.scores.tolist() == [0]
    assert not model.pairs


def test_claims_are_read_with_what_they_retrieve():
    passages = [" ".join(f"{name}{k}" for k in range(90)) + "." for name in "abcdefg"]
    first, second = "a0 " * 39 + "a1 unheard.", "b0 " * 39 + "b1 b2."
    said = (f"Sure!\n\n{first} {second}", "c0 c1 c2 unknown.")
    model, vectors = WordSupport(), WordVectors()
    made = [bridge_example(0, passages=passages, response=text) for text in said]
    one, other = measure_group(made, model, vectors)
    assert model.calls == [3]
    assert len(vectors.calls) == 1
    for premise, claim in model.pairs:
        assert passages["abc".index(claim[0])] in premise
        # Chunks have 90 tokens: so many that another one would be too much.
        assert len(premise.split()) == (BUDGET - SPECIAL - len(claim.split())) // 90 * 90
    assert [said[0][start:end] for start, end in one.suspicion.spans] == ["Sure!", first, second]
    assert one.suspicion.scores == pytest.approx([0, 1 / 41, 0])
    assert one.numbers == pytest.approx([(40 / 41 + 1) / 2, 40 / 41])
    assert other.numbers == pytest.approx([3 / 4, 3 / 4])
    assert CLAIM_OVERLAP < CLAIM_TOKENS < CHUNK_TOKENS


def test_tokens_are_those_of_the_embedder():
    tokenizer, text = tiny_tokenizer(), "the old bridge, opened"
    starts = starts_of(WordVectors(tokenizer))(text)
    assert len(starts) == len(tokenizer(text, add_special_tokens=False)["input_ids"])
    assert starts == sorted(starts)
    assert starts[0] == 0
