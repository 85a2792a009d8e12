"""A sentence is split where it states something else."""

from __future__ import annotations

import pytest

from lrp4rag.guard.checks.facts import facts_of


def split(answer: str) -> list[str]:
    return [fact.text for fact in facts_of(answer)]


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        ("Staff may work remotely 3 days per week.", ["Staff may work remotely 3 days per week"]),
        (
            "Partners get 2 weeks of paid leave, which must be taken within 12 months.",
            ["Partners get 2 weeks of paid leave", "which must be taken within 12 months"],
        ),
        ("It costs $10 and lasts 2 days.", ["It costs $10", "lasts 2 days"]),
        ("It is safe, cheap and easy to use.", ["It is safe", "cheap", "easy to use"]),
        (
            "You need a passport, two photographs and a form.",
            ["You need a passport", "two photographs", "a form"],
        ),
        ("Bring food and water.", ["Bring food and water"]),
        ("Bake it at 220 °C for 35 minutes.", ["Bake it at 220 °C", "for 35 minutes"]),
        ("It is open from 9:00 to 17:30.", ["It is open from 9:00 to 17:30"]),
        ("Refunds take 5 to 7 business days.", ["Refunds take 5 to 7 business days"]),
        ("Come on Monday at 9:00.", ["Come on Monday at 9:00"]),
        ("See Section 4.2 for leave of 3 weeks.", ["See Section 4.2 for leave of 3 weeks"]),
        (
            "It renews every year unless you cancel it.",
            ["It renews every year", "unless you cancel it"],
        ),
        ("If you lose it, call the desk.", ["If you lose it, call the desk"]),
        (
            "If you have worked for 6 months, you get 10 days.",
            ["If you have worked for 6 months", "you get 10 days"],
        ),
        (
            "You get 10 days if you have worked for 6 months.",
            ["You get 10 days", "if you have worked for 6 months"],
        ),
        (
            "The lease applies to flats, houses, and boats, and it is paid monthly.",
            ["The lease applies to flats", "houses", "boats", "it is paid monthly"],
        ),
        ("Not all may go: interns and visitors are excluded.", None),
        ("Apples, pears and plums are harvested in autumn.", None),
        (
            "Claims are due in 60 days; late ones are rejected.",
            ["Claims are due in 60 days", "late ones are rejected"],
        ),
    ],
)
def test_what_a_sentence_states(answer: str, facts: list[str] | None) -> None:
    assert split(answer) == (facts or [answer.rstrip(".")])


def test_a_subject_before_a_relative_clause_is_a_part_of_both_claims() -> None:
    answer = "Anna Berg, who founded the firm in 1998, retired last year."
    founded, retired = facts_of(answer)
    for fact in (founded, retired):
        assert [answer[start:end] for start, end in fact.stretches] == ["Anna Berg", fact.text]
    assert (founded.text, retired.text) == ("who founded the firm in 1998", "retired last year")


def test_steps_of_a_list_are_claims_without_their_numbers() -> None:
    assert split("To reset it:\n1. Unplug it.\n2. Wait 30 seconds. Then go.\n- Done twice") == [
        "Unplug it",
        "Wait 30 seconds",
        "Then go",
        "Done twice",
    ]


def test_a_cell_of_a_table_is_said_of_the_first_of_its_row() -> None:
    answer = "| Plan | Price |\n|---|---|\n| Basic | $10 |\n| Team | $25 |"
    found = facts_of(answer)
    assert [fact.text for fact in found] == ["$10", "$25"]
    assert [answer[a:b] for a, b in found[1].stretches] == ["Team", "$25"]
