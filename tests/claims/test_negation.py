"""Whether a claim denies what passages say, or says what they deny."""

from __future__ import annotations

import pytest

from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.negation import compare_signs
from lrp4rag.claims.places import Place


def compared(passages: list[str], claim: str):
    return compare_signs(Grounds("", Index(passages)), Place(0, 0, len(claim), claim))


def denials(passage: str, claim: str) -> list[tuple[str, str]]:
    _, found = compared([passage], claim)
    return [(claim[one.start : one.end], passage[one.passage_start : one.passage_end]) for one in found]


@pytest.mark.parametrize(
    ("passage", "claim", "pair"),
    [
        ("The mark is voluntary and costs 5 euros.", "The mark is compulsory.", ("compulsory", "voluntary")),
        (
            "Credit card numbers were not touched.",
            "Credit card numbers were touched.",
            ("touched", "touched"),
        ),
        ("The gate of the castle is open on Sunday.", "On Sunday the gate is closed.", ("closed", "open")),
        ("Your settings are kept.", "Your settings are lost.", ("lost", "kept")),
        ("Fees are due on completion.", "Fees are due on exchange, not completion.", ("completion",) * 2),
        (
            "The mass was played without the Sanctus.",
            "The mass was played with the Sanctus.",
            ("Sanctus",) * 2,
        ),
        ("Dogs must wear a lead.", "Dogs need not wear a lead.", ("wear", "wear")),
    ],
)
def test_denials_have_the_words_of_both(passage: str, claim: str, pair: tuple[str, str]) -> None:
    assert pair in denials(passage, claim)
    features, _ = compared([passage], claim)
    assert features["near"] > 0


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("Credit card numbers were not touched.", "The card numbers weren't touched."),
        ("The gate is open on Sunday.", "The gate is open on Sunday."),
        ("The gate is shut on Sunday. It is open on Monday.", "The gate is open on Monday."),
        ("The mark is voluntary.", "The mark is optional."),
        ("Fish is sold here.", "Elephants never dance."),
    ],
)
def test_none_where_a_passage_says_the_same_or_nothing(passage: str, claim: str) -> None:
    assert denials(passage, claim) == []


def test_no_words_and_no_passages() -> None:
    assert compared(["The gate is open."], "") == compared([], "It is open.") == ({}, [])


def test_features_have_the_same_names_and_are_finite() -> None:
    rows = [
        compared(["The gate is open on Sunday, unless it rains."], text)[0]
        for text in ("Closed.", "If it rains, the gate is not open; it is closed.", "Never mind elephants")
    ]
    assert rows[0].keys() == rows[1].keys() == rows[2].keys()
    assert all(abs(value) < 1000 for row in rows for value in row.values())
