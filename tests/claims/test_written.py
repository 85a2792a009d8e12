"""A value in the writing of another, and the number that is written in it."""

from __future__ import annotations

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import Value
from lrp4rag.claims.written import as_written, cased, number_of


def value(text: str) -> Value:
    return Value("quantity", 0, len(text), text)


@pytest.mark.parametrize(
    ("text", "other", "written"),
    [
        ("18 weeks", "16 weeks", "16 weeks"),
        ("18 calendar weeks", "16 weeks", "16 calendar weeks"),
        ("18 kg", "2.5 kg", "2.5 kg"),
        ("18 kg", "1,250 kg", "1,250 kg"),
        ("18 kg", "1\u202f250 kg", "1\u202f250 kg"),
        ("$18 million", "$2.5 million", "$2.5 million"),
        ("18%", "7%", "7%"),
        ("1,250 people", "9", "9 people"),
        ("twelve weeks", "16 weeks", "16 weeks"),
        ("18 weeks", "twelve weeks", "twelve weeks"),
        ("Twelve weeks", "nine weeks", "Nine weeks"),
        ("twelve weeks", "Nine weeks", "Nine weeks"),
        ("18 weeks", "20 to 30 weeks", "20 weeks"),
        ("for 18 weeks", "16", "for 16 weeks"),
    ],
)
def test_only_the_number_is_another(text: str, other: str, written: str) -> None:
    assert as_written(value(text), value(other)) == written


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("18 weeks", "18 days"),
        ("twelve weeks", "Twelve weeks"),
        ("18 weeks", "a fortnight"),
        ("a fortnight", "18 weeks"),
        ("half an hour", "a quarter"),
        ("18 weeks", "forty-two weeks"),
        ("twenty-six weeks", "18 weeks"),
        ("18", ""),
    ],
)
def test_the_same_or_no_plain_number_makes_no_text(text: str, other: str) -> None:
    assert as_written(value(text), value(other)) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18 weeks", 18),
        ("2.5 kg", 2.5),
        ("1,250 people", 1250),
        ("1\u202f250 people", 1250),
        ("1,250,000.5", 1250000.5),
        ("$3 million", 3),
        ("3 May 2021", 3),
        ("May 2021", 2021),
        ("zero", 0),
        ("Nine people", 9),
        ("nineteen", 19),
        ("TWENTY years", 20),
        ("7 of twelve", 7),
        ("twelve of 7", 7),  # digits before words
    ],
)
def test_the_number_of_a_value_is_the_first_one(text: str, number: float) -> None:
    assert number_of(value(text)) == number


@pytest.mark.parametrize(
    "text", ["", "a fortnight", "half", "forty-two", "twenty-six", "someone", "tenth", "Turin"]
)
def test_other_words_are_no_numbers(text: str) -> None:
    assert number_of(value(text)) is None


@pytest.mark.parametrize("text", ["18 weeks", "nine people", "7 %", "12.50 euros", "1,000 m"])
def test_the_number_of_a_plain_value_is_found_in_a_text(text: str) -> None:
    (found,) = (one for one in find_values(f"it was {text} there") if one.kind == "quantity")
    assert number_of(found) == number_of(value(text))


@pytest.mark.parametrize(
    ("text", "like", "found"),
    [
        ("nine", "Twelve", "Nine"),
        ("nine", "twelve", "nine"),
        ("Nine", "twelve", "Nine"),
        ("nine", "TWELVE", "Nine"),
        ("nine", "12", "nine"),
        ("9", "Twelve", "9"),
        ("nine", "", "nine"),
        ("", "Twelve", ""),
    ],
)
def test_a_text_has_a_capital_where_the_other_has_one(text: str, like: str, found: str) -> None:
    assert cased(text, like) == found
