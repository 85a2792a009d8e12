"""Which sentences state something, into which claims they are split, and that any text has an answer."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.guard.checks.facts import facts_of, stated
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import encodable

CASES = json.loads((Path(__file__).parent / "counted.json").read_text())
HOSTILE = ["a b c. ", "(", "0", "and, ", "if ", "\n- 1 ", "|a", "also ", "**", "1. ", "unless x, "]
HOSTILE += ["\ud800", "the 5 "]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t",
        "Hello there!",
        "I'm sorry.",
        "I hope this helps!",
        "Based on the passages:",
        "Based on the provided passages, ",
        "According to passage 2:",
        "Let me know if you have any questions.",
        "Please contact HR for more information.",
        "Unable to answer based on given passages.",
        "The passages do not mention whether dogs are allowed or how many.",
        "I am sorry, but the passages do not say anything about this, so there is no information.",
        "Here are the steps:",
        "# Parental leave",
        "**Parental leave**",
        "Sources: [1], [3]",
        "[2]",
        "---",
    ],
)
def test_what_states_nothing_has_no_fact(answer: str) -> None:
    assert facts_of(answer) == []
    assert stated(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Yes.",
        "16 weeks",
        "Call 555-201-3321 for more information.",
        "Sure, you can bring your dog.",
        "I'm sorry, but refunds are not possible.",
        "If you have any pets, tell the landlord.",
        "Duration: 16 weeks",
        "- a valid licence",
        "Ask your doctor if you need more than one tablet.",
    ],
)
def test_what_states_something_has_a_fact(answer: str) -> None:
    assert len(facts_of(answer)) == 1
    assert stated(answer) == [(0, len(answer))]


def test_facts_are_as_many_as_people_count() -> None:
    """The counts were written down before the code was; docs/checks.md has these figures."""
    apart = [abs(len(facts_of(case["answer"])) - case["facts"]) for case in CASES]
    assert sum(one == 0 for one in apart) == 29
    assert max(apart) == 1
    assert len(apart) == 32


@pytest.mark.parametrize(
    "fact",
    [
        "Staff may work remotely 3 days per week",
        "Bring food and water",
        "Refunds take 5 to 7 business days",
        "See Section 4.2 for leave of 3 weeks",
        "Leave is 16 weeks (Section 9.4)",
        "If you lose it, call the desk",
        "Not all may go: interns and visitors are excluded",
        "Apples, pears and plums are harvested in autumn",
        "Mark moved to St. Ives in 1975",
        "See No. 5 of vol. 2",
        "Open Mon.-Fri. from 9:00 to 17:00",
        "An adult may take 1, 2 tablets",
        "An adult may take 1. or 2 tablets",
        "An adult may take 1 \u2013 2 tablets",
        "Take 1, 2 or 3 tablets",
        "It was written by Zoe\u0308",
        "\u092f\u0939 \u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902 \u0939\u0948\u0964"[:-1],
        "It costs \u20ac 20",
        "It fell by 5 %",
        "\u00b15 is allowed",
        "He writes C++",
        "The rest is \u00bd",
    ],
)
def test_one_fact_is_whole_with_its_abbreviations_amounts_and_signs(fact: str) -> None:
    assert [one.text for one in facts_of(f"{fact}.")] == [fact]


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (
            "Partners get 2 weeks of paid leave, which must be taken within 12 months.",
            ["Partners get 2 weeks of paid leave", "which must be taken within 12 months"],
        ),
        ("It costs $10 and lasts 2 days.", ["It costs $10", "lasts 2 days"]),
        ("It is safe, cheap and easy to use.", ["It is safe", "cheap", "easy to use"]),
        ("Bake it at 220 °C for 35 minutes.", ["Bake it at 220 °C", "for 35 minutes"]),
        ("It renews every year unless you cancel it.", ["It renews every year", "unless you cancel it"]),
        (
            "If you have worked for 6 months, you get 10 days.",
            ["If you have worked for 6 months", "you get 10 days"],
        ),
        (
            "The lease applies to flats, houses, and boats, and it is paid monthly.",
            ["The lease applies to flats", "houses", "boats", "it is paid monthly"],
        ),
        (
            "Claims are due in 60 days; late ones are rejected.",
            ["Claims are due in 60 days", "late ones are rejected"],
        ),
        (
            "A depot can be opened by adults; for minors both parents sign [DEP-4].",
            ["A depot can be opened by adults", "for minors both parents sign"],
        ),
        ("Leave is 16 weeks [2].", ["Leave is 16 weeks"]),
        ("It costs 5 euros [Handbook, 4.2]", ["It costs 5 euros"]),
        ("He lives in D.C. and works in the U.S.", ["He lives in D.C.", "works in the U.S."]),
        ("J. R. R. Tolkien wrote it. It sold well.", ["J. R. R. Tolkien wrote it", "It sold well"]),
        ("Open Mon. to Fri. from nine.", ["Open Mon. to Fri", "from nine"]),
        ("It has 12 rooms, and 3 baths are new.", ["It has 12 rooms", "3 baths are new"]),
        (
            "To reset it:\n1. Unplug it.\n2. Wait 30 seconds. Then go.\n- Done twice",
            ["Unplug it", "Wait 30 seconds", "Then go", "Done twice"],
        ),
        (
            "Eligibility\n- Full-time staff\n- Part-time staff\n\nNotice\nStaff give 8 weeks' notice.",
            ["Full-time staff", "Part-time staff", "Staff give 8 weeks' notice"],
        ),
        (
            "The policy covers theft, but the passages do not mention floods or how to file.",
            ["The policy covers theft"],
        ),
        (
            "The passages do not mention floods, but the policy covers theft.",
            ["the policy covers theft"],
        ),
    ],
)
def test_what_is_stated_beside_something_else_is_a_fact_of_its_own(answer: str, facts: list[str]) -> None:
    assert [one.text for one in facts_of(answer)] == facts


def test_a_subject_before_a_relative_clause_is_a_part_of_both_claims() -> None:
    answer = "Anna Berg, who founded the firm in 1998, retired last year."
    founded, retired = facts_of(answer)
    for fact in (founded, retired):
        assert [answer[start:end] for start, end in fact.stretches] == ["Anna Berg", fact.text]
    assert (founded.text, retired.text) == ("who founded the firm in 1998", "retired last year")


def test_a_cell_of_a_table_is_said_of_the_first_of_its_row() -> None:
    answer = "| Plan | Price |\n|---|---|\n| Basic | $10 |\n| Team | $25 |"
    found = facts_of(answer)
    assert [fact.text for fact in found] == ["$10", "$25"]
    assert [answer[a:b] for a, b in found[1].stretches] == ["Team", "$25"]


def test_stating_sentences_are_those_with_a_fact() -> None:
    answer = "Hello! It costs $10. I hope this helps."
    assert [answer[start:end] for start, end in stated(answer)] == ["It costs $10."]


TEXTS = st.text(max_size=200) | st.lists(
    st.sampled_from(
        [
            *" .,;:|-\n()*#\"'",
            *HOSTILE,
            "It is",
            "2 weeks",
            "which ",
            " and ",
            "but",
            "9:00",
            "no information",
        ]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_offsets_are_exact_and_facts_do_not_overlap(answer: str) -> None:
    sentences = sentences_in(encodable(answer))
    end = 0
    for fact in facts_of(answer):
        assert answer[fact.start : fact.end] == fact.text
        assert fact.text.strip() == fact.text != ""
        assert fact.stretches[-1] == (fact.start, fact.end)
        start, last = sentences[fact.sentence]
        assert all(start <= a < b <= last for a, b in fact.stretches)
        assert fact.start >= end
        end = fact.end


@pytest.mark.parametrize("piece", HOSTILE)
def test_steps_grow_with_the_text_only(piece: str) -> None:
    """A tick is a step; the time of ten times the text is far from a hundred times the time."""

    def cost(length: int) -> tuple[int, float]:
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1

        begun = time.process_time()
        facts_of(piece * (length // len(piece)), tick)
        return ticks, time.process_time() - begun

    (few, short), (many, long) = cost(600), cost(6_000)
    assert many <= 11 * few + 100
    assert long < 60 * short + 0.3
