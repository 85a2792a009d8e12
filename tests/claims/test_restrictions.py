"""Conditions that a claim leaves out, adds, widens or turns round."""

from __future__ import annotations

import pytest

from lrp4rag.claims.conditions import restrictions
from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place
from lrp4rag.claims.restrictions import compare_restrictions


def compared(passage: str, claim: str, question: str = ""):
    sentence = Place(0, 0, len(claim), claim)
    said = [word.base for word in sentence.content]
    return compare_restrictions(Grounds(question, Index([passage])), sentence, said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is free if you are a member.", [("need", "if you are a member")]),
        ("It is free except for dogs.", [("never", "except for dogs")]),
        ("Open only on weekdays, from noon", [("only", "only on weekdays"), ("after", "from noon")]),
        ("It is free.", []),
        ("", []),
    ],
)
def test_restrictions(text: str, expected: list[tuple[str, str]]) -> None:
    found = [(one.kind, text[one.start : one.end].rstrip(". ")) for one in restrictions(text, 0, len(text))]
    assert found == expected


@pytest.mark.parametrize(
    ("passage", "claim", "left_out"),
    [
        ("Parking is free for members of the club.", "Parking is free.", "for members of the club"),
        ("The ride is free unless it snows.", "The ride is free.", "unless it snows"),
    ],
)
def test_a_condition_left_out(passage: str, claim: str, left_out: str) -> None:
    features, left = compared(passage, claim)
    assert [passage[one.start : one.end].rstrip(".") for one in left] == [left_out]
    assert features["drop max"] > 0.5


def test_none_is_left_out_that_the_question_supposes() -> None:
    passage = "Parking is free for members of the club."
    assert compared(passage, "Parking is free.", "I am a member of the club")[1] == []


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (
            "The change lapses unless the officer confirms it.",
            "The change lapses even if the officer confirms it.",
        ),
        ("You get the price also without the receipt.", "You get the price if you have the receipt."),
        ("It is due before the journey.", "It is due after the journey."),
        ("A visit is free if the machine cannot be mended.", "A visit is free if the machine can be mended."),
    ],
)
def test_a_condition_turned_round(passage: str, claim: str) -> None:
    assert compared(passage, claim)[0]["cond contrary"] > 0.3
    assert compared(passage, passage)[0]["cond contrary"] <= 0


def test_a_limit_widened() -> None:
    passage = "Only members may park in the yard."
    assert compared(passage, "Everybody may park in the yard.")[0]["widened max"] > 0
    assert compared(passage, "Members may park in the yard.")[0]["widened max"] == 0
    assert compared("The report comes by mail.", "The report comes every month.")[0]["wide all"] == 0


def test_no_words_and_no_passages() -> None:
    assert compared("It is open.", "") == ({}, [])
    features, left = compared("", "All of it")
    assert left == []
    assert features["limit only"] == 0
