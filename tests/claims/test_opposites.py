"""Phrases that say opposite things in other words."""

import pytest

from lrp4rag.claims.index import Index
from lrp4rag.claims.opposites import opposites
from lrp4rag.claims.places import Place

PASSAGES = (
    "Tickets are changed free of charge up to 24 hours before departure. A wall charger is sold separately.",
    "Merrivane refused payment for the last two years of the work. Original packaging is not required.",
    "Loans renew automatically up to four times. Revenue of the group rose to 412 million.",
    "Guide dogs need neither permission nor a deposit. Dogs are allowed on the terrace.",
    "NT 412 leaves Lindemar daily except Saturday at 21:40 and reaches Osk at 07:15.",
)


def pairs(answer: str, passages: tuple[str, ...] = PASSAGES) -> list[tuple[str, str]]:
    found = opposites(Index(passages), Place(0, 0, len(answer), answer))
    return [
        (answer[one.start : one.end], passages[one.passage][one.passage_start : one.passage_end])
        for one in found
    ]


@pytest.mark.parametrize(
    ("answer", "own", "other"),
    [
        (
            "Changes up to 24 hours before departure have to be paid for.",
            "have to be paid for",
            "free of charge",
        ),
        ("The wall charger comes in the box.", "in the box", "sold separately"),
        ("He insisted on payment for the last two years of the work.", "insisted", "refused"),
        ("Keeping the original packaging is essential.", "essential", "not required"),
        ("Loans never renew by themselves, so ask.", "never", "automatically"),
        ("Revenue of the group shrank.", "shrank", "rose"),
        ("Dogs are banned from the terrace.", "banned", "allowed"),
        ("NT 412 leaves Lindemar daily including Saturday.", "including", "except"),
    ],
)
def test_opposite_phrases_of_the_same_thing(answer: str, own: str, other: str) -> None:
    assert (own, other) in pairs(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Tickets are changed free up to 24 hours before departure.",
        "The wall charger is not included.",
        "Original packaging is optional.",
        "No permission is needed for guide dogs.",
        "Dogs are not banned from the terrace.",
        "Lockers cost extra.",  # nothing is said of them
        "It shrank.",
        "It is valid on all trains including NT 412 from Lindemar to Osk.",  # another thing is left out
    ],
)
def test_the_same_and_other_things_are_none(answer: str) -> None:
    assert pairs(answer) == []


def test_a_sentence_that_has_both_says_neither() -> None:
    passages = ("Entry is free for children, and for adults a ticket costs extra.",)
    assert pairs("Entry costs extra for children.", passages) == []


def test_what_another_sentence_says_too_is_no_opposite() -> None:
    passages = ("Dogs are allowed on the terrace.", "Dogs are banned from the terrace in summer.")
    assert pairs("Dogs are banned from the terrace.", passages) == []


def test_two_denials_are_none() -> None:
    passages = ("Data may not be shared without consent of the user.",)
    assert pairs("Data may be shared with consent of the user.", passages) == []
