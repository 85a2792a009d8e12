"""All values of a text: their order, their places, and texts that were written to break it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.surroundings import Surroundings

_PIECES = st.sampled_from(
    [
        *(
            "3.9.",
            "2021",
            "May ",
            "12:30",
            " am",
            "one ",
            "two hundred ",
            " and a half",
            "half ",
            "a ",
            "quarter",
            " of ",
        ),
        *(
            "\u00a3",
            "$",
            "%",
            " km",
            "mm",
            "-",
            "\u2013",
            "1",
            "7",
            ",",
            ".",
            "/",
            "(",
            "[",
            "]",
            "\n",
            " ",
            "'s",
            "\u2019t",
        ),
        *(
            "not",
            "must ",
            "Passage ",
            "no ",
            "information ",
            "Trim ",
            "E4",
            "\u00bd",
            "1/2",
            "\u017f",
            "\u212a",
            "\u0663",
        ),
    ]
)
_HOSTILE = st.text() | st.lists(_PIECES, max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The Trim 450: 35 % on 600 m\u00b2", [("name", "Trim 450"), ("quantity", "35 %"),
                                         ("quantity", "600 m\u00b2")]),
        ("It opens at 9 am on 3 May.", [("polarity", "opens"), ("time", "9 am"), ("date", "3 May")]),
        ("You must not pay \u00a35 a month.", [("polarity", "must not"), ("quantity", "\u00a35"),
                                            ("period", "a month")]),
        ("half a year and a day", [("quantity", "half a year"), ("period", "a day")]),
        ("Passage 2 does not mention 5 %.", [("reference", "Passage 2"), ("absence", "does not mention"),
                                             ("quantity", "5 %")]),
        ("from 2019 to 2021", [("date", "2019"), ("date", "2021")]),
        ("nothing of note here", []),
        ("", []),
    ],
)  # fmt: skip
def test_values_come_in_the_order_of_the_text(text: str, values: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.text) for one in find_values(text)] == values


@settings(max_examples=300, deadline=None)
@given(_HOSTILE, _HOSTILE)
def test_values_are_stretches_of_any_text_that_do_not_overlap(text: str, context: str) -> None:
    end = 0
    for value in find_values(text, Surroundings(context)):
        assert end <= value.start < value.end
        assert text[value.start : value.end] == value.text
        assert value.kind != "quantity" or abs(value.amount) < float("inf")
        end = value.end


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 5000, "1" + ",000" * 2000, "0." + "9" * 5000])
@pytest.mark.parametrize(
    "around", ["{}", "{} years", "${} million", "{}:30", "Passage {}", "[{}]", "{}.9.", "v{}", "Trim {}"]
)
def test_numbers_of_any_length_are_read(digits: str, around: str) -> None:
    assert all(
        abs(one.amount) < float("inf") for one in find_values(around.format(digits)) if one.kind == "quantity"
    )


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "1 ",
        "Aa ",
        "not ",
        "(",
        "9",
        "A",
        "A-",
        "one ",
        "1-",
        "2021 ",
        "\n1. ",
        "A. ",
        "The ",
        "half ",
        " ",
        "five (5) ",
        "Chapter 1: ",
    ],
)
def test_long_texts_take_linear_time(piece: str) -> None:
    find_values("Ask Ada. It takes two weeks.")  # loads the libraries
    started = time.process_time()
    find_values(piece * (10_000 // len(piece)))
    assert time.process_time() - started < 3  # a third of a second or less


def test_many_sentences_are_indexed_in_linear_time() -> None:
    started = time.process_time()
    Index(["Ada pays 5 euros. " * 1000])
    assert time.process_time() - started < 10
