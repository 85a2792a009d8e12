"""What a text says to be missing, and whether the passages have it."""

from __future__ import annotations

import time

import pytest

from lrp4rag.claims.absence import Absence, absence_in, compare_absence
from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place


def absence_of(text: str) -> Absence | None:
    return absence_in(text, 0, len(text))


def compared(passages: list[str], text: str):
    return compare_absence(Grounds("", Index(passages)), Place(0, 0, len(text), text))


@pytest.mark.parametrize(
    "text",
    [
        "The passages do not say when the toilets will be repaired.",
        "How cold it is isn't mentioned.",
        "No arrival date is given.",
        "Nothing is said about dogs.",
        "I cannot find the price.",
        "The price is not in the passages.",
        "Whether it snows is left open.",
        "Neither text describes side effects.",
    ],
)
def test_statements_of_absence(text: str) -> None:
    found = absence_of(text)
    assert found is not None
    assert (found.start, bool(found.words)) == (0, True)


@pytest.mark.parametrize(
    "text", ["Dogs are not allowed.", "The shop has no lift.", "He was paid in May.", "", "Nothing is free."]
)
def test_other_denials_are_none(text: str) -> None:
    assert absence_of(text) is None
    assert compared(["Dogs are welcome."], text) == ({}, None)


def test_an_answer_is_found() -> None:
    passage = "Dogs are welcome. The toilets will be repaired in June."
    text = "The passages do not say when the toilets will be repaired."
    features, answered = compared([passage], text)
    assert answered is not None
    assert passage[answered.passage_start : answered.passage_end] == "The toilets will be repaired in June."
    assert features["topic best"] == pytest.approx(1)


def test_nothing_answers_what_no_passage_has() -> None:
    text = "The passages do not say who owns the elephants."
    assert compared([], text)[1] is compared(["Dogs are welcome."], text)[1] is None


@pytest.mark.parametrize("word", ["no ", "not said ", "nothing ", "the passages do not ", "isn't "])
def test_repeated_words_take_linear_time(word: str) -> None:
    started = time.perf_counter()
    absence_of(word * 3000)
    assert time.perf_counter() - started < 5
