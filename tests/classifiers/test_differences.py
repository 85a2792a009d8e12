"""What passages have against the sentences that alarms suspect."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.claims.answer import Compared, Passages, compare_answer
from lrp4rag.classifiers.alarms import Alarmed
from lrp4rag.classifiers.contradiction import denials, differences, with_clauses
from lrp4rag.classifiers.verdict import Contradiction, Difference
from lrp4rag.features.rows import text_rows
from lrp4rag.util.sentences import sentences_in

PASSAGES = (
    "The Brio 3 may be washed by hand. Its lid must not be removed while it is hot.",
    "Entry is free, but only for members of the club. The gate opens at 9 o'clock.",
    "The Lenta 8 is sold in Austria and in Poland.",
)


def alarmed(
    name: str, answer: str, suspected: float, passages: tuple[str, ...] = PASSAGES
) -> tuple[list[Compared], Alarmed]:
    compared = compare_answer(Passages("Is entry free?", passages), answer, sentences_in(answer))
    rows = text_rows(compared)
    return compared, Alarmed({"sentences": rows}, {name: np.full(len(rows), suspected)})


def named(
    name: str, answer: str, suspected: float = 3.0, passages: tuple[str, ...] = PASSAGES
) -> tuple[Difference, ...]:
    compared, scored = alarmed(name, answer, suspected, passages)
    return differences(compared, passages, scored)


@pytest.mark.parametrize(
    ("name", "answer", "kind", "passage", "words"),
    [
        ("condition", "Entry is free.", "left out", 1, "only for members"),
        ("refusal", "The passages do not say when the gate opens.", "answered", 1, "opens at 9 o'clock."),
    ],
)
def test_the_passages_words_are_told(name, answer, kind, passage, words) -> None:
    (found,) = named(name, answer)
    assert (found.kind, found.passage) == (kind, passage)
    assert words in found.words
    assert PASSAGES[passage][found.passage_start : found.passage_end] == found.words
    assert answer[found.start : found.end]


def test_what_is_denied_is_contradicted_by_the_clause() -> None:
    answer = "It is a fine pan. The lid must be removed while it is hot."
    compared, scored = alarmed("negation", answer, 3.0)
    (found,) = [one for one in denials(answer, compared, PASSAGES, scored) if one.start > 17]
    assert found.text == answer[found.start : found.end] == "The lid must be removed"
    assert (
        found.instead == PASSAGES[0][found.passage_start : found.passage_end] == "Its lid must not be removed"
    )
    assert found.margin is None
    compared, scored = alarmed("negation", answer, -3.0)
    assert denials(answer, compared, PASSAGES, scored) == []


def test_what_is_said_of_another_names_it() -> None:
    (found,) = named("attribution", "The Brio 3 is sold in Austria and in Poland.")
    assert (found.kind, found.passage, found.subject) == ("said of another", 2, "Lenta 8")


def test_what_its_own_passage_says_as_well_is_not_said_of_another() -> None:
    rooms = tuple(f"Room {number} seats {number - 60} people." for number in (115, 116, 117, 118))
    assert named("attribution", "Room 117 seats 91 people.", passages=rooms) == ()
    (found,) = named("attribution", "Room 119 seats 91 people.", passages=rooms)
    assert (found.kind, found.subject) == ("said of another", "Room 115")


def test_no_alarm_and_an_alarm_without_a_place_tell_nothing() -> None:
    assert named("condition", "Entry is free.", suspected=-3.0) == ()
    assert named("condition", "Bananas grow on herbs.") == ()
    assert named("invention", "Entry is free.") == ()


def test_a_clause_has_the_place_of_its_sign_and_not_of_its_numbers() -> None:
    answer, passage = "It may be kept for 9 days.", "It may not be kept for 5 days."

    def contradiction(text: str, instead: str) -> Contradiction:
        start, first = answer.index(text), passage.index(instead)
        here, there = (start, start + len(text)), (first, first + len(instead))
        return Contradiction(*here, text, instead, 0, *there, margin=None)

    sign, number = contradiction("may", "may not"), contradiction("9 days", "5 days")
    clause = contradiction(answer[:-1], passage[:-1])
    assert with_clauses([sign, number], []) == (sign, number)
    assert with_clauses([sign, number], [clause]) == (clause, number)
    assert with_clauses([clause, number], [clause]) == (clause, number)
