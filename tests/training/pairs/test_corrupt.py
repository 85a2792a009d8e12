"""Minimal pairs: which copies are made, their labels, ids and sources, and that nothing breaks them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from lrp4rag.example import Label
from lrp4rag.training.pairs import KINDS, families_of, pairs_of
from lrp4rag.training.pairs.corrupt import cut
from lrp4rag.training.pairs.statements import REFUSALS
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
