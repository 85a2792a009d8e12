"""How words compare with the passages' words, on two sentences that can be compared by eye."""

from __future__ import annotations

from dataclasses import replace
from math import log, log1p

import numpy as np
import pytest

from lrp4rag.features.alignment import FEATURES, NAMES, alignment
from lrp4rag.features.record import Record
from lrp4rag.reader.encoding import Encoded
from tests.features.test_context import worded

QUESTION = "Cat open?"
PASSAGES = ("Mud is wet. Pool open late. Cat swim free if tiny.", "Fish sold near.")
RESPONSE = "Cat swim free only late near mud. Fish sing if 7."
# The first sentence is aligned with that of the cat, the second one with that of the fish.
KNOWN, NEW = log(5 / 1.5), log(5 / 0.5)  # rarity of a word in one of the four places, and in none
FIRST = 3.5 / 6  # cat, swim, free; and "late" beside them
SECOND = KNOWN / (KNOWN + 2 * NEW)
ASKED = 0.75  # "cat", and "open" beside it

BY_HAND = {
    "stop word": [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0],
    "in no passage": [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1],
    "in the place": [1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0],
    "near the place": [1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0],
    "in the place's passage": [1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0],
    "asked": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    "rarity": [KNOWN, KNOWN, KNOWN, 0, KNOWN, KNOWN, KNOWN, KNOWN, NEW, 0, NEW],
    "similarity": [FIRST] * 7 + [SECOND] * 4,
    "similarity elsewhere": [1 / 6] * 7 + [0] * 4,
    "asked there": [1] * 7 + [0] * 4,
    "one passage": [0] * 11,
    "new after the word before": [1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    "new before the next word": [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    "new after two words": [1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    "new between words": [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    "digit": [0] * 10 + [1],
    "capital": [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    "sentence's words": [log1p(6)] * 7 + [log1p(3)] * 4,
    "place in the sentence": [*(k / 7 for k in range(7)), *(k / 4 for k in range(4))],
    "one sentence": [1] * 7 + [0] * 4,
    "novel scope": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    "limits missing": [1] * 7 + [0] * 4,  # "if"
    "limits added": [1] * 11,  # "only", and the second "if"
    "away from home": [0] * 7 + [SECOND] * 4,
    "asked at the place": [ASKED] * 7 + [0] * 4,
}


def aligned(encoded: Encoded) -> dict[str, list[float]]:
    found = alignment(Record(encoded, {}))
    assert found.shape == (len(FEATURES), len(encoded.response_ids))
    assert np.isfinite(found).all()
    return dict(zip(NAMES, found.tolist(), strict=True))


def with_tokens(response: str, *offsets: tuple[int, int], passages: tuple[str, ...] = PASSAGES) -> Encoded:
    one = worded(QUESTION, passages, response)
    return replace(one, response_ids=tuple(range(len(offsets))), response_offsets=offsets)


def test_each_feature_by_hand() -> None:
    assert tuple(BY_HAND) == NAMES
    found = aligned(worded(QUESTION, PASSAGES, RESPONSE))
    for name, expected in BY_HAND.items():
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=2e-6, err_msg=name)


def test_one_passage_and_one_sentence() -> None:
    found = aligned(worded(QUESTION, PASSAGES[:1], "Cat swim"))
    assert (found["one passage"], found["one sentence"]) == ([1, 1], [1, 1])


def test_home_is_the_passage_of_what_was_said_so_far() -> None:
    """Three sentences of the fish make its passage the home of those after them, and not of the first one."""
    response = "Cat swim free. Fish sold near. Fish sold near. Fish sold. Cat swim free."
    found = aligned(worded(QUESTION, PASSAGES, response))["away from home"]
    assert found[:3] == [0] * 3
    assert found[3] > 0
    assert found[-4:-3] == [0]
    assert min(found[-3:]) > 0


@pytest.mark.parametrize(
    "after", ["Fish sing if 7.", "Fish sold near. Fish sold near. Cat!", "\n- fish", "?"]
)
def test_what_follows_a_sentence_changes_none_of_its_features(after: str) -> None:
    before = "Cat swim free only late near mud. Pool open late."
    alone = alignment(Record(worded(QUESTION, PASSAGES, before), {}))
    whole = alignment(Record(worded(QUESTION, PASSAGES, f"{before} {after}"), {}))
    np.testing.assert_array_equal(whole[:, : alone.shape[1]], alone)


def test_limits_of_the_place_that_the_sentence_has_are_not_missing() -> None:
    found = aligned(worded(QUESTION, PASSAGES, "Cat swim if tiny."))
    assert (found["limits missing"][0], found["limits added"][0]) == (0, 0)


def test_scope_that_the_place_has_is_not_novel() -> None:
    found = aligned(worded(QUESTION, ("All cat swim free.",), "All cat swim free"))
    assert found["novel scope"] == [0] * 4


@pytest.mark.parametrize(
    ("response", "offsets", "capital"),
    [
        ("Cat swim", ((0, 1), (1, 3), (4, 8)), [1, 1, 0]),  # two tokens of one word
        ("Cat swim", ((0, 8),), [1]),  # a token of two words has the values of the first
        ("swim Cat", ((0, 4), (4, 8)), [0, 1]),  # a token may begin with a space
    ],
)
def test_a_token_has_the_values_of_its_word(response: str, offsets, capital: list[int]) -> None:
    assert aligned(with_tokens(response, *offsets))["capital"] == capital


def test_a_sign_has_no_values() -> None:
    found = aligned(with_tokens("Cat!", (0, 3), (3, 4)))
    assert {values[1] for values in found.values()} == {0.0}


@pytest.mark.parametrize("response", ["!", "\U0001f44d \U0001f44d", "\u2014 ..."])
def test_a_response_without_words_has_no_values(response: str) -> None:
    assert not np.any(list(aligned(worded(QUESTION, PASSAGES, response)).values()))


@pytest.mark.parametrize("passages", [("", ""), ("\U0001f44d",), ("!", "?")])
def test_passages_without_words_have_none_of_the_words(passages: tuple[str, ...]) -> None:
    found = aligned(worded(QUESTION, passages, RESPONSE))
    assert not np.any(found["in the place"])
    assert not np.any(found["similarity"])


def test_a_passage_that_was_cut_away_is_no_place() -> None:
    found = aligned(worded(QUESTION, ("", PASSAGES[1]), "Fish sold near."))
    assert found["similarity"] == [1, 1, 1]
    assert found["away from home"] == [0, 0, 0]


def test_a_response_of_one_token() -> None:
    found = aligned(with_tokens(RESPONSE, (0, len(RESPONSE))))
    assert found["similarity"] == [pytest.approx(FIRST)]


def test_a_response_of_no_token() -> None:
    assert aligned(with_tokens(RESPONSE))["similarity"] == []
