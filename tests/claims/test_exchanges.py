"""Words in whose place a passage has others."""

from __future__ import annotations

import pytest

from lrp4rag.claims.answer import Passages
from lrp4rag.claims.exchanges import exchanges
from lrp4rag.claims.places import Place

RULES = (
    "Rowing club. Notice of resignation must reach the secretary by 30 September. Leave the dough in the "
    "fridge for 12 hours. Members may borrow boats, oars and life jackets. The gate shuts in late autumn."
)


def pairs(text: str, *passages: str, question: str = "") -> list[tuple[str, str]]:
    """What is exchanged in a sentence, with what."""
    given = Passages(question, passages)
    found = exchanges(given, Place(0, 0, len(text), text))
    return [
        (text[one.start : one.end], passages[one.passage][one.passage_start : one.passage_end])
        for one in found
    ]


@pytest.mark.parametrize(
    ("claim", "exchanged"),
    [
        ("Notice must reach the treasurer by 30 September.", ("treasurer", "secretary")),
        (
            "Your notice must reach the membership officer by 30 September.",
            ("membership officer", "secretary"),
        ),
        ("You leave the dough in the cellar for 12 hours.", ("cellar", "fridge")),
        ("Members may borrow boats, oars and swimming vests.", ("swimming vests", "life jackets")),
        ("It shuts in late spring.", ("late spring", "late autumn")),
        ("Members may borrow boats, helmets or life jackets.", ("helmets", "oars")),
    ],
)
def test_other_words_stand_where_no_passage_has_the_claim_s(claim: str, exchanged: tuple[str, str]) -> None:
    assert pairs(claim, "Bicycles cost 5 euros.", RULES)[:1] == [exchanged]


@pytest.mark.parametrize(
    "claim",
    [
        "Notice must reach the secretary by 30 September.",
        "Notice has to get to the treasurer before autumn is over.",  # nothing around it is the same
        "Notice must arrive at the secretary by 30 September.",  # a verb
        "Members may borrow boats, oars and a life jacket.",
        "Leave the dough in the fridge for a dozen hours.",
        "The gate shuts in late fall.",  # of one sense
        "Notice must reach the secretary by 1 October.",  # a value: compared elsewhere
        "The gate closes in late autumn.",
        "",
    ],
)
def test_what_is_said_in_other_words_is_not_exchanged(claim: str) -> None:
    assert pairs(claim, RULES) == []


def test_words_that_passages_or_the_question_have_need_more_around_them() -> None:
    claim, less = "Notice must reach the treasurer by 30 September.", "Give notice to the treasurer."
    expected = [("treasurer", "secretary")]
    assert pairs(claim, RULES, question="Does the treasurer want my notice?") == expected
    assert pairs(claim, RULES, "The treasurer keeps the key.") == expected
    shorter = "Give the notice to the secretary."
    assert pairs(less, shorter) == expected
    assert pairs(less, shorter, "The treasurer keeps the key.") == []
    assert pairs(claim, "") == pairs(claim) == []


def test_determiners_are_the_same() -> None:
    passage = "Days may be carried over if your line manager agrees in writing."
    assert pairs("Days may be carried over if the works council agrees in writing.", passage)[:1] == [
        ("works council", "line manager")
    ]


def test_what_has_most_around_it_comes_first() -> None:
    passages = "Send notice to the clerk.", "Notice must reach the secretary by 30 September."
    claim = "Notice must reach the treasurer by 30 September."
    assert pairs(claim, *passages) == [("treasurer", "secretary")]
    both = "Notice must reach the secretary by 30 September.", "Notice must reach the clerk by May."
    assert pairs(claim, *both) == [("treasurer", "secretary"), ("treasurer", "clerk")]


@pytest.mark.parametrize(("word", "other"), [("lessor", "lessee"), ("tram", "train"), ("buyer", "seller")])
def test_words_that_begin_alike_and_opposites_are_exchanged(word: str, other: str) -> None:
    assert pairs(f"The gate opens for the {word}.", f"The gate opens for the {other}.") == [(word, other)]


def test_passages_that_overlap_say_it_once() -> None:
    passages = ("Notice must reach the secretary in May.",) * 3
    assert pairs("Notice must reach the treasurer in May.", *passages) == [("treasurer", "secretary")]


def test_short_forms_are_the_same_words() -> None:
    officer = "The Chief Executive Officer must sign the form."
    assert pairs("The CEO must sign the form.", officer) == []
    assert pairs("The shop is open on Friday mornings.", "The shop is open on Fri mornings.") == []
    assert pairs("It is 20 km from the shop.", "It is 20 kilometres from the shop.") == []
