"""Clauses of a text, and which of their words are denied."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lrp4rag.claims.signed import signed_clauses


def denied(text: str) -> list[str]:
    return [
        text[word.start : word.end]
        for clause in signed_clauses(text)
        for word in clause.content
        if word.sign < 0
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dogs are not allowed.", ["allowed"]),
        ("No dogs, but cats are welcome.", ["dogs"]),
        ("It comes without nuts; milk is in it.", ["nuts"]),
        ("The fee is due on completion, not on exchange.", ["exchange"]),
        ("It doesn't close.", ["close"]),
        ("No more than 5 dogs.", []),
        ("Room no. 5 is free of charge.", []),
        ("It isn't without risk.", []),
    ],
)
def test_a_denial_reaches_the_words_behind_it(text: str, expected: list[str]) -> None:
    assert denied(text) == expected


@pytest.mark.parametrize(
    ("text", "sign"), [("Nobody came.", -1), ("Nobody failed.", 1), ("It is forbidden.", -1), ("We came.", 1)]
)
def test_the_sign_of_a_clause(text: str, sign: int) -> None:
    assert [clause.sign for clause in signed_clauses(text)] == [sign]


def test_clauses_lie_in_order_and_a_verb_of_two_words_is_one() -> None:
    text = "The fee is given back, if you ask; else it is lost"
    clauses = list(signed_clauses(text))
    assert all(first.end <= second.start for first, second in pairwise(clauses))
    assert "give_back" in {word.base for clause in clauses for word in clause.content}
    assert list(signed_clauses("")) == list(signed_clauses(" ,;. ")) == []
