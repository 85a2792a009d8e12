"""Conditions that an answer leaves out are reported, those that it carries or that are of others not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given as given_texts
from hypothesis import settings
from hypothesis import strategies as st

from benchmarks.checks.__main__ import omission_figures
from lrp4rag.classifiers.verdict import Sentence, Verdict
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.omissions import Omissions
from lrp4rag.source import Source
from lrp4rag.util.text import encodable

REMOTE = "Employees may work remotely up to 3 days per week, subject to manager approval and documentation."


def look(
    answer: str | None, *passages: str, question: str = "", verdict: Verdict | None = None
) -> list[Finding]:
    return Omissions()(CheckInput(question, tuple(map(Source, passages)), answer, verdict))


def conditions(answer: str, *passages: str, question: str = "") -> list[object]:
    return [one.details["condition"] for one in look(answer, *passages, question=question)]


def place_of(found: Finding) -> tuple[int, int]:
    start, end = found.details["passage_start"], found.details["passage_end"]
    assert isinstance(start, int)
    assert isinstance(end, int)
    return start, end


def test_a_condition_that_is_left_out_is_quoted_with_its_place() -> None:
    answer = "Hello! Employees may work remotely up to 3 days per week."
    (found,) = look(answer, "The canteen opens at 11:30.", REMOTE)
    condition = "subject to manager approval and documentation"
    assert found.words == f'The answer leaves out a condition of passage 2: "{condition}".'
    assert (found.check, found.kind, found.passages) == ("omissions", "omitted", (1,))
    assert answer[found.start : found.end] == "Employees may work remotely up to 3 days per week."
    assert found.details["condition"] == REMOTE[slice(*place_of(found))] == condition


@pytest.mark.parametrize(
    ("passage", "answer", "condition"),
    [
        (
            "If the item is unopened, customers can get a full refund within 30 days of purchase.",
            "Customers can get a full refund.",
            ["If the item is unopened", "within 30 days of purchase"],
        ),
        (
            "Tenants may keep a dog, but only with the written consent of the landlord.",
            "Tenants may keep a dog.",
            ["only with the written consent of the landlord"],
        ),
        (
            "Vouchers can be redeemed in shops. They are not valid for sale items.",
            "Vouchers can be redeemed in shops.",
            ["They are not valid for sale items"],
        ),
        (
            "The licence lasts 3 years. It may be revoked if the holder moves abroad.",
            "The licence lasts 3 years.",
            ["It may be revoked if the holder moves abroad"],
        ),
        (
            "Guests may use the pool unless a class takes place.",
            "Guests may use the pool.",
            ["unless a class takes place"],
        ),
    ],
)
def test_conditions_in_a_sentence_and_after_it(passage: str, answer: str, condition: list[str]) -> None:
    assert conditions(answer, passage) == condition


@pytest.mark.parametrize(
    ("passage", "answer"),
    [
        (REMOTE, REMOTE),
        (REMOTE, "You may work remotely 3 days per week if your boss agrees and you document it."),
        (
            REMOTE,
            "Remote work needs the approval of a manager. Employees may work remotely up to 3 days per week.",
        ),
        (
            "Managers receive stock options. Engineers receive stock options only after two years.",
            "Managers receive stock options.",
        ),
        (
            "Full-time staff get 25 days, and part-time staff get 15 days if they work 20 hours.",
            "Full-time staff get 25 days.",
        ),
        ("The tower was closed until 1950.", "The tower was closed."),
        ("Refunds are possible within 30 days.", "Refunds are possible within 14 days."),
        ("Refunds are possible within 14 days.", "Refunds are possible within two weeks."),
        (REMOTE, "Unable to answer based on given passages."),
        (REMOTE, "Which days do you mean?"),
        (REMOTE, "The museum is in Oslo."),
    ],
)
def test_what_is_carried_contradicted_or_of_another_thing_is_not_omitted(passage: str, answer: str) -> None:
    assert look(answer, passage) == []


def test_what_the_question_grants_needs_no_repetition() -> None:
    passage = "Customers can return shoes within 30 days of purchase."
    assert (
        look("Yes, you can return shoes.", passage, question="Can I return shoes that I bought 30 days ago?")
        == []
    )


def test_a_yes_says_what_was_asked() -> None:
    assert conditions("Yes.", REMOTE, question="May employees work remotely 3 days per week?") == [
        "subject to manager approval and documentation"
    ]


def test_a_condition_is_reported_once() -> None:
    answer = (
        "Employees may work remotely up to 3 days per week. So employees may work remotely 3 days a week."
    )
    assert len(look(answer, REMOTE)) == 1


def test_the_passage_that_a_verdict_names_is_looked_at() -> None:
    answer = "Employees may work remotely up to 3 days per week."
    free = "Employees may work remotely up to 3 days per week."
    for passage, count in ((0, 1), (1, 0)):
        sentence = Sentence(0, len(answer), answer, None, (), passage, "supported")
        verdict = Verdict(0.1, 0.5, None, None, (), (sentence,))
        assert len(look(answer, REMOTE, free, verdict=verdict)) == count


def test_settings_are_how_much_is_made_and_carried() -> None:
    given = CheckInput(
        "", (Source(REMOTE),), "You may work remotely 3 days per week after a document is filed."
    )
    assert Omissions()(given) == []
    assert len(Omissions(carried=0.9)(given)) == 1
    assert Omissions(carried=0.9, made=1.0)(given) == []


def test_nothing_to_look_at() -> None:
    assert look(None, REMOTE) == []
    assert look("It is so.") == []
    assert look("", REMOTE) == []
    assert look("Employees may work remotely.", "") == []


def test_precision_and_recall_are_those_that_were_written_down() -> None:
    found = omission_figures()
    assert found["test"]["precision"] >= 0.9
    assert found["test"]["recall"] >= 0.75


PIECES = ["unless ", "if ", "only ", "with ", "at least 3 ", "subject to ", "It may ", ". ", ", and "]
PIECES += ["(", "0", "\ud800", "\n"]


@settings(max_examples=50, deadline=None)
@given_texts(*[st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join)] * 3)
def test_any_text_has_an_answer_and_places_are_exact(question: str, passage: str, answer: str) -> None:
    for found in look(answer, passage, question=question):
        assert found.details["condition"] == encodable(passage)[slice(*place_of(found))]
        assert answer[found.start : found.end].strip()
        assert len(found.words) < 200


@pytest.mark.parametrize("piece", [*PIECES, "You may go unless x is so. ", "with a b c d "])
def test_long_texts_cost_what_they_are_long(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        begun = time.process_time()
        look(text, text, question=text[:1000])
        return time.process_time() - begun

    assert seconds(6_000) < 60 * seconds(600) + 0.15
