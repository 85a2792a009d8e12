"""Phrases by which a sentence says more or less than the passages."""

import pytest

from lrp4rag.claims.additions import additions, without
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place

PASSAGES = (
    "Office employees with at least 12 months of service get 16 weeks of leave on full pay.",
    "Give 20 g of alum in 10 litres of water, provided the soil pH is below 5.5. Withdrawals are free.",
    "Bottles may be opened in the hall. Tickets can be changed free up to 24 hours before departure.",
)


def found(answer: str) -> list[tuple[str, str]]:
    return [
        (answer[one.start : one.end], without(answer, one.start, one.end))
        for one in additions(Index(PASSAGES), Place(0, 0, len(answer), answer))
    ]


@pytest.mark.parametrize(
    ("answer", "phrase", "rest"),
    [
        (
            "Employees get 16 weeks of leave on full pay, however long they have been there.",
            ", however long they have been there",
            "Employees get 16 weeks of leave on full pay.",
        ),
        (
            "Give 20 g of alum in 10 litres of water, regardless of the soil.",
            ", regardless of the soil",
            "Give 20 g of alum in 10 litres of water.",
        ),
        (
            "Withdrawals are free, provided you give notice.",
            ", provided you give notice",
            "Withdrawals are free.",
        ),
        ("Tickets can always be changed free.", " always", "Tickets can be changed free."),
        (
            "Unless you are a guest, bottles may be opened in the hall.",
            "Unless you are a guest,",
            "Bottles may be opened in the hall.",
        ),
    ],
)
def test_a_phrase_and_the_sentence_without_it(answer: str, phrase: str, rest: str) -> None:
    assert (phrase, rest) in found(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Give 20 g of alum in 10 litres of water, if the soil pH is below 5.5.",  # as a passage does
        "Give 20 g of alum in 10 litres of water, if your garden is acid.",  # maybe in other words
        "Withdrawals are always free.",  # nothing limits them there
        "Employees get 16 weeks of leave on full pay.",
        "Always.",
        "Bottles may be opened in the hall, whatever's left.",
        "Tickets can not always be changed free.",
        "Bottles (always open) may be opened in the hall.",
        "Whenever you like, the king comes.",  # no passage is like the rest
    ],
)
def test_what_passages_have_or_do_not_limit_is_none(answer: str) -> None:
    assert found(answer) == []


@pytest.mark.parametrize(
    ("sentence", "phrase", "rest"),
    [
        ("A (if b) c.", "(if b", "A) c."),
        ("A, if b.", ", if b", "A."),
        ("A, if b, c.", ", if b", "A, c."),
        ("If b, a.", "If b,", "A."),
        ("A if b", " if b", "A"),
    ],
)
def test_signs_around_it_go_too(sentence: str, phrase: str, rest: str) -> None:
    start = sentence.index(phrase)
    assert without(sentence, start, start + len(phrase)) == rest


def test_numbers_are_not_cut() -> None:
    answer = "Withdrawals are free if more than 1,000 euros lie there at 9:30 am."
    assert [rest for _, rest in found(answer)] == ["Withdrawals are free."]
