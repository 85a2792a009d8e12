"""Faults: what each kind changes, and that what it writes is wrong."""

from __future__ import annotations

import re
from random import Random

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import agree
from lrp4rag.training.pairs.corrupt import labelled
from lrp4rag.training.pairs.edit import Draft
from lrp4rag.training.pairs.harmful import HARMFUL
from lrp4rag.training.pairs.other_values import is_wrong
from lrp4rag.training.pairs.statements import statements
from tests.training.pairs.texts import ALL, FERRY, LEAVE, MOWER, of


def made(kind, example, others=(), seeds=range(25)):
    """(what stood there, what is labelled, the faulty example) of every edit of a kind, over many seeds."""
    found = {}
    for seed in seeds:
        for edit in HARMFUL[kind](Draft(example, others), Random(seed)):
            twin = labelled(example, [edit])
            span = twin.response[twin.labels[0].start : twin.labels[0].end]
            found[twin.response] = (example.response[edit.start : edit.end], span, twin)
    return list(found.values())


@pytest.mark.parametrize(
    ("kind", "response", "before", "after"),
    [
        ("number", "The fee is 45 euros for members.", "45 euros", r"\d\d euros"),
        ("number", "The tour has seven stops in town.", "seven", r"\w+"),
        ("date or unit", "The office opens on 12 March 2019.", "12 March 2019", r"\d+ [A-Z]\w+ 20\d\d"),
        ("date or unit", "The kiln heats for 30 minutes.", "30 minutes", r"30 (?:seconds|hours|days)"),
        ("date or unit", "The pool is cleaned on Tuesday.", "Tuesday", r"\w+day"),
        ("date or unit", "The gate closes at 6 pm sharp.", "6 pm", r"\d+ pm"),
        ("date or unit", "Rent is due every month in cash.", "every month", r"every \w+"),
        ("negation", "The roof is sealed with tar.", "is", "is not"),
        ("negation", "Visitors can park in the yard.", "can", "cannot"),
        ("negation", "Dogs are not allowed in the yard.", "are not allowed", "are allowed"),
        ("negation", "Wash it before the first use.", "before", "after"),
        ("negation", "Add the flour to the warm milk.", "Add", "Do not add"),
        ("condition", "The flat is open only to members.", "only ", "open"),
        ("condition", "Rain usually stops the match.", "usually", "(?:always|never)"),
        ("condition", "The fine is at least 20 euros.", "at least", "(?:at most|up to)"),
        ("condition", "Refunds come, if it is kept.", ", if it is kept", "come|in any case|under all.*"),
        ("condition", "If the lamp blinks, call the desk.", "If the lamp blinks, ", "In (?:any|every) case,"),
    ],
)  # fmt: skip
def test_what_a_kind_writes_in_whose_place(kind, response, before, after):
    found = [(was, span) for was, span, _ in made(kind, of(response)) if was == before]
    assert found
    assert all(re.fullmatch(after, span) for _, span in found), found


@pytest.mark.parametrize("kind", HARMFUL)
def test_a_fault_differs_and_all_else_is_as_it_was(kind):
    seen = 0
    for example in ALL:
        others = [one for one in ALL if one is not example]
        for was, span, twin in made(kind, example, others, range(8)):
            seen += 1
            (label,) = twin.labels
            assert label.kind == kind
            assert span == span.strip() != was.strip()
            head, tail = twin.response[: label.start], twin.response[label.end :]
            assert example.response.startswith(head.rstrip())
            assert example.response.endswith(tail)
            assert example.source == twin.source
    assert seen


@pytest.mark.parametrize("example", [LEAVE, FERRY], ids=["leave", "ferry"])
def test_a_name_is_replaced_by_one_of_the_passages_or_of_another_source(example):
    others = [one for one in ALL if one is not example]
    names = {
        one.text
        for source in ALL
        for text in source.passages
        for one in find_values(text)
        if one.kind == "name"
    }
    found = made("name", example, others)
    assert found
    assert all(any(name in span or span in name for name in names) for _, span, _ in found)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("17 weeks", True),  # nobody says so
        ("112 days", False),  # the same
        ("9 weeks", True),  # of something else
        ("five weeks", False),  # the question has it
        ("4 weeks", False),  # as near as what was written
        ("ever", False),  # no value
    ],
)
def test_only_what_the_passages_do_not_say_here_is_wrong(written, wrong):
    example = of(
        "Parental leave lasts 16 weeks.",
        "Parental leave lasts 16 weeks. Parental leave lasts 4 weeks for partners.",
        "Holidays of the kitchen crew come to 9 weeks.",
        question="Is parental leave five weeks?",
    )
    draft = Draft(example)
    (value,) = (one for one in draft.values if one.kind == "quantity")
    assert is_wrong(draft, value, written) == wrong


def test_a_number_within_a_stated_range_is_not_wrong():
    draft = Draft(of("Bake it for 30 minutes.", "Bake it for 30 to 40 minutes."))
    (value,) = (one for one in draft.values if one.kind == "quantity")
    assert not is_wrong(draft, value, "35 minutes")
    assert is_wrong(draft, value, "50 minutes")


@pytest.mark.parametrize(
    "response",
    [
        "It is open on weekdays.",
        "It is shut at the weekend.",
        "It shuts at six in the evening.",
        "It lasts until 2050.",
    ],
)
def test_dates_and_times_without_a_likely_other_one_stay(response):
    assert made("date or unit", of(response)) == []


@pytest.mark.parametrize(
    "response",
    ["Step 2 is next.", "See passage 2 for this.", "Only one of them is red."],
)
def test_numbers_that_say_no_amount_stay(response):
    assert made("number", of(response)) == []


def test_what_the_passages_do_not_support_is_left_alone():
    example = of("It costs 45 euros and is not open on Monday.", "The garden has roses and a pond.")
    assert all(made(kind, example) == [] for kind in HARMFUL if kind not in ("invention", "misattributed"))


def test_a_refusal_replaces_all_unless_the_response_is_one():
    found = made("refusal", LEAVE)
    assert all(was == LEAVE.response and span == twin.response for was, span, twin in found)
    assert len({span for _, span, _ in found}) > 4
    assert made("refusal", of("The passages do not mention the fee.")) == []


def test_an_invention_is_a_statement_of_another_source():
    found = made("invention", LEAVE, [FERRY])
    assert {span for _, span, _ in found} <= set(statements(FERRY))
    assert found
    assert all(twin.passages == LEAVE.passages for _, _, twin in found)
    assert made("invention", LEAVE) == []


def test_a_misattribution_brings_the_passage_that_says_it_of_something_else():
    found = made("misattributed", MOWER, [FERRY, LEAVE])
    numbers = [one for one in found if one[0]]
    statement = [one for one in found if not one[0]]
    assert numbers
    for _, span, twin in numbers:
        assert twin.passages[:-1] == MOWER.passages
        assert "Korvel" not in twin.passages[-1]
        (value,) = find_values(span)
        assert any(agree(value, one) for one in find_values(twin.passages[-1]))
    assert {span for _, span, _ in statement} == {
        "They carry three dozen passengers on every crossing to the island."
    }
    assert all(twin.passages == (*MOWER.passages, FERRY.passages[0]) for _, _, twin in statement)
