"""Minimal pairs: which copies are made, their labels, ids and sources, and that nothing breaks them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import agree
from lrp4rag.example import Label
from lrp4rag.training.pairs import KINDS, families_of, pairs_of
from lrp4rag.training.pairs.corrupt import HARMFUL, cut, labelled
from lrp4rag.training.pairs.edit import Draft
from lrp4rag.training.pairs.other_values import is_wrong
from lrp4rag.training.pairs.statements import REFUSALS, statements
from lrp4rag.util.errors import InputError
from tests.training.pairs.texts import ALL, FERRY, LEAVE, MOWER, of


@pytest.fixture(scope="module")
def families():
    return list(families_of(ALL, each=len(KINDS)))


def test_each_response_comes_with_as_many_faulty_copies_as_asked_for(families):
    assert [family[0] for family in families] == list(ALL)
    for family in families:
        assert sum(bool(one.labels) for one in family) == len(KINDS)
        assert {one.source for one in family} == {family[0].source}


def test_ids_name_the_kind_and_are_unique(families):
    rows = [one for family in families for one in family]
    assert len({one.id for one in rows}) == len(rows)
    for row in rows:
        original, _, name = row.id.partition("~")
        if row.labels:
            assert name.split("~")[0] == row.labels[0].kind.replace(" ", "-")
        elif name:
            assert name.split("~")[0] in ("reworded", "passage-added", "refused")
        assert original in {one.id for one in ALL}


def test_the_harmless_copy_shares_what_is_no_fault(families):
    copies = {one.id: one for family in families for one in family}
    wrong, right = copies["mower~misattributed"], copies["mower~passage-added"]
    assert (right.passages, right.prompt, right.response) == (wrong.passages, wrong.prompt, MOWER.response)
    refused = next(one for one in copies.values() if "~refused" in one.id)
    assert refused.response in REFUSALS
    assert refused.passages in {one.passages for one in ALL} - {copies[refused.source].passages}


def test_the_kind_made_least_comes_first():
    made = Counter(
        one.labels[0].kind for one in pairs_of(ALL, kinds=["number", "negation", "refusal"]) if one.labels
    )
    assert made == {"number": 1, "negation": 1, "refusal": 1}


@pytest.mark.parametrize(("kinds", "names"), [(["number"], {"number"}), (KINDS, set(KINDS) - {"refusal"})])
def test_several_faults_of_a_copy(kinds, names):
    rows = [one for one in pairs_of(ALL, kinds=kinds, faults=3, each=4, harmless=False) if one.labels]
    several = [one for one in rows if len(one.labels) > 1]
    assert max(len(one.labels) for one in several) == 3
    assert {label.kind for one in several for label in one.labels} <= names
    for one in several:
        ends = [label.end for label in one.labels]
        assert all(end < label.start for end, label in zip(ends, one.labels[1:], strict=False))


def test_equal_arguments_give_equal_pairs_and_another_seed_others():
    assert list(pairs_of(ALL, seed=1)) == list(pairs_of(ALL, seed=1))
    assert list(pairs_of(ALL, seed=1)) != list(pairs_of(ALL, seed=2))


def test_what_is_left_out():
    wrong = replace(LEAVE, labels=(Label(0, 8),), id="wrong")
    unlabelled, unanswered = (
        replace(MOWER, labels=None, id="u"),
        replace(MOWER, response=None, labels=None, id="n"),
    )
    assert list(families_of([wrong, unlabelled, unanswered])) == []
    assert list(families_of([FERRY, of("Blue.", "Red.")], kinds=["number"]))[1] == []
    assert all(one.labels or "~" not in one.id for one in pairs_of(ALL, harmless=False))


def test_ids_that_the_data_have_are_not_given_again():
    taken = replace(MOWER, id="leave~number", source="other")
    rows = list(pairs_of([LEAVE, taken], kinds=["number"]))
    assert len({one.id for one in rows}) == len(rows)
    assert "leave~number~2" in {one.id for one in rows}


def test_more_copies_than_there_can_be_end():
    (family,) = families_of([FERRY], kinds=["negation"], each=10**12)
    labelled = [one for one in family if one.labels]
    assert 0 < len(labelled) < 100


def test_an_unknown_kind_is_refused_at_once():
    with pytest.raises(InputError, match=r"no fault is called 'spelling'; there are: number, .*invention"):
        pairs_of(ALL, kinds=["spelling"])


def test_one_source_lends_itself_no_statements():
    rows = [one for one in pairs_of([LEAVE, replace(LEAVE, id="b")], each=9) if one.labels]
    assert rows
    assert "invention" not in {label.kind for one in rows for label in one.labels}


HOSTILE = {
    "one word": "No",
    "sign": ".",
    "emoji": "\U0001f600\U0001f600 16 \U0001f468\u200d\U0001f469\u200d\U0001f466 weeks",
    "list": "1. 16 weeks\n2. 4 weeks\n- Ms Aldana\n*\n",
    "no ends": "parental leave lasts 16 weeks and partners get 4 weeks and staff must ask Ms Aldana " * 20,
    "quotes": '"\u201c\u201d\'" 16 weeks ((( [1] "If it is so, 4 weeks"',
    "patterns": "\\1 \\g<0> {topic} {0} %s 16 weeks. $1 (?P<x>) [a-z]+ lasts 4 weeks.",
    "lines": "\r\n\u2028\t Parental leave\r lasts\n\n16 weeks.\x00",
    "long": "Parental leave lasts 16 weeks, if the team lead agrees. Ms Aldana is asked before March. " * 60,
    "digits": "1" * 400 + " weeks, " + "9," * 200,
}


@pytest.mark.parametrize("response", HOSTILE.values(), ids=HOSTILE)
def test_no_response_breaks_it(response):
    example = replace(LEAVE, response=response, id="hostile")
    for copy in pairs_of([example, FERRY], each=8, faults=2):
        assert all(
            copy.response[label.start : label.end].strip() or not copy.response.strip()
            for label in copy.labels
        )


def test_a_cut_response_is_made_of_its_sentences():
    for seed in range(10):
        response = cut(LEAVE, Random(seed)).response
        assert response in LEAVE.response
        assert response.endswith(".")


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
