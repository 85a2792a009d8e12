"""Names, and words with a capital that are none."""

from __future__ import annotations

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.names import name_key
from lrp4rag.claims.surroundings import NOTHING, Surroundings, written_before


def names(text: str, context: str = "") -> list[str]:
    return [one.text for one in find_values(text, Surroundings(context)) if one.kind == "name"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The Trim 450 cuts grass.", ["Trim 450"]),
        ("The light E4 blinks.", ["E4"]),
        ("We asked Piet Harmsen's sister.", ["Piet Harmsen"]),
        ("We asked Ms Lund and Ove Dahl.", ["Ms Lund", "Ove Dahl"]),
        ("It opened in the Port of Varna.", ["Port of Varna"]),
        ("She runs Alby & Sons.", ["Alby & Sons"]),
        ("He moved to the U.S. army.", ["U.S."]),
        ("Travel to the US is free.", ["US"]),
        ("Log in to iCloud now.", ["iCloud"]),
        ("Use only EdgeLok blades.", ["EdgeLok"]),
        ("I asked Dorn. Dorn knows.", ["Dorn", "Dorn"]),
        ("Give Febra 75 mg and Febra 3 times.", ["Febra", "Febra"]),
        ("Lena Voss", ["Lena Voss"]),
        ("Paris", ["Paris"]),
    ],
)
def test_names_are_found_whole(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Place the beets in water. Stir them.",
        "However, it rains. Additionally, it snows.",
        "On Monday I leave, in March I return.",
        "1. Boil it.\n2. Peel it.\n- Cut it.",
        "Based on the passages, yes.",
        "Do NOT open it.",
        "A file of 256 KB, 10MB or 5GB.",
        "It said: Unable to answer.",
        "Before lunch. Unlike dinner.",
        "Step 2 comes next.",
        "Bake 20-25 minutes. Wait 5 turns.",
    ],
)
def test_other_words_with_a_capital_are_no_names(text: str) -> None:
    assert names(text) == []


def test_the_context_tells_which_first_words_are_names() -> None:
    assert names("Leavely is free.") == []
    assert names("Leavely is free.", "book with Leavely.") == ["Leavely"]
    assert names("Staff Portal opens.", "for all staff") == ["Portal"]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("Mr Piet Harmsen's", ("piet", "harmsen")),
        ("the U.S.", ("united", "states")),
        ("Port of Varna", ("port", "varna")),
        ("The", ("the",)),
    ],
)
def test_a_key_has_the_words_that_tell_it_from_others(words: str, key: tuple[str, ...]) -> None:
    assert name_key(words) == key


@pytest.mark.parametrize("text", ["It costs 20 EUR.", "Pay CHF 1,500 or USD 300 now.", "prices in GBP"])
def test_codes_of_currencies_are_no_names(text: str) -> None:
    assert names(text) == []


def test_a_number_with_its_unit_is_no_identifier() -> None:
    assert names("a 5kW motor and a B52") == ["B52"]


def test_what_stands_far_before_a_sentence_is_not_looked_at() -> None:
    """Else a text of many sentences would take time with the square of their number."""
    text = "A grey Heron stood there. " * 1000
    around = written_before(text, len(text), Surroundings("An egret."))
    assert len(around.texts[0]) < len(text) / 2
    assert {"grey", "egret"} <= around.small
    assert "Heron" in around.inside
    assert written_before(text, 50, NOTHING).texts[0] == text[:50]
