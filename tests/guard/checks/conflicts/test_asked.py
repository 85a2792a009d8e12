"""Passages that answer a question in other words and otherwise, and passages that answer another one."""

from __future__ import annotations

import pytest

from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.conflicts import Conflicts
from lrp4rag.source import Source


def conflicts(question: str, response: str, *passages: str) -> list[tuple[str, ...]]:
    """The values of the conflicts that the response touches."""
    findings = Conflicts()(CheckInput(question, tuple(map(Source, passages)), response))
    sides = [list(one.details["sides"]) for one in findings if one.start is not None]  # type: ignore[arg-type]
    return [tuple(side["value"] for side in both) for both in sides]


@pytest.mark.parametrize(
    ("question", "response", "one", "other", "values"),
    [
        (
            "By when must a burglary be reported?",
            "Within one week.",
            "A burglary must be reported to the police without delay, at the latest within three days.",
            "Policyholders report burglaries within one week.",
            ("three days", "one week"),
        ),
        (
            "What does express delivery cost?",
            "It costs 9.90 euros.",
            "Express delivery costs 9.90 euros and arrives before noon.",
            "Choose express at the checkout for 12.90 euros; we deliver the next day.",
            ("9.90 euros", "12.90 euros"),
        ),
        (
            "Is there a fee for closing a securities account?",
            "Closing a securities account is free of charge.",
            "Closing a securities account is free of charge.",
            "For closing a securities account we charge 25 euros.",
            ("free of charge", "25 euros"),
        ),
        (
            "Can the filter of the jug go into the dishwasher?",
            "You can put the filter into the dishwasher.",
            "The filter of the jug is dishwasher-safe.",
            "Wash all parts of the jug by hand. The filter must not be put into the dishwasher.",
            ("The filter of the jug is dishwasher-safe.", "must not"),
        ),
    ],
)
def test_another_passage_answers_otherwise(question, response, one, other, values) -> None:
    assert conflicts(question, response, one, other) == [values]
    assert conflicts(question, response, other, one) == [values[::-1]]


@pytest.mark.parametrize(
    ("question", "response", "one", "other"),
    [
        (
            "How many days of leave can a trainee carry over?",
            "Five days.",
            "Employees can carry over up to ten days of leave.",
            "Trainees can carry over up to five days of leave.",
        ),
        (
            "What does admission to the zoo cost?",
            "Admission to the zoo costs 8 euros.",
            "Admission to the zoo costs 8 euros.",
            "Children pay 5 euros for admission to the zoo.",
        ),
        (
            "What is the daily limit for withdrawals with the Junior card?",
            "You can withdraw up to 100 euros a day.",
            "The Junior card can be used to withdraw up to 100 euros a day.",
            "Payments in shops with the Junior card are limited to 200 euros a day.",
        ),
        (
            "How long does delivery to the islands take?",
            "Delivery to the islands takes four days.",
            "Delivery to the islands takes four days.",
            "During the winter delivery to the islands takes nine days.",
        ),
        (
            "How long can items be returned?",
            "Items can be returned within 30 days.",
            "Items can be returned within 30 days.",
            "Opened items cannot be returned.",
        ),
    ],
)
def test_the_other_passage_speaks_of_something_else(question, response, one, other) -> None:
    assert conflicts(question, response, one, other) == []
    assert conflicts(question, response, other, one) == []
