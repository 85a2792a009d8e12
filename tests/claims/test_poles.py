"""Phrases for one of two poles."""

from __future__ import annotations

import pytest

from lrp4rag.claims.poles import poles


@pytest.mark.parametrize(
    ("text", "dimension", "sign"),
    [
        ("It costs 5 euros.", "charge", 1),
        ("It is free of charge.", "charge", -1),
        ("Dogs may enter.", "permission", 1),
        ("Dogs may not enter.", "permission", -1),
        ("Dogs cannot enter.", "permission", -1),
        ("load_forbidden: paint", "permission", -1),
        ("You must pay.", "duty", 1),
        ("You need not pay.", "duty", -1),
        ("It was not approved.", "success", -1),
        ("before the journey", "order", 1),
        ("after the journey", "order", -1),
    ],
)
def test_poles(text: str, dimension: str, sign: int) -> None:
    assert sign in {pole.sign for pole in poles(text) if pole.dimension == dimension}


def test_the_characters_are_the_texts() -> None:
    text = "Well, it is free of charge."
    (pole,) = (pole for pole in poles(text, 6) if pole.dimension == "charge" and pole.start == 12)
    assert text[pole.start : pole.end] == "free"
    assert poles("") == ()
