"""Supported sentences become wrong where one side is changed, and stay right where both are."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from experiments.comparer.rules import RESTRICTIONS, SET, by_rules, denied, of_another, restricted
from lrp4rag.reader.comparer import Pair
from lrp4rag.training.labelled_pairs import LabelledPair

PREMISE = "K130 manual. The hose may be up to 25 m long. | K160 manual. The hose may be up to 40 m long."
DRAWS = range(60)


def supported(claim: str, premise: str = PREMISE, lead: str = "How long may the hose of the K130 be?"):
    return LabelledPair(Pair(premise, lead, claim), "e", (), "source", "everyday")


def test_what_is_asked_of_one_model_is_told_of_another() -> None:
    made = of_another(supported("The hose may have 25 m."), Random(0))
    assert made is not None
    assert (made.label, made.kind, made.spans) == ("not_e", "misattributed", None)
    assert made.pair.premise == PREMISE.replace("K130", "x").replace("K160", "K130").replace("x", "K160")
    assert made.pair.lead == "How long may the hose of the K130 be?"


@pytest.mark.parametrize(
    ("lead", "premise"),
    [
        ("How long may the hose be?", PREMISE),
        ("Is the hose of the K130 longer than that of the K160?", PREMISE),
        ("How long is the Tagus?", "The Tagus has 1,007 km, the Douro 897 km."),
    ],
)
def test_things_that_are_both_asked_for_or_none_of_which_is_keep_their_places(lead, premise) -> None:
    assert of_another(supported("It has 25 m.", premise, lead), Random(0)) is None


def test_a_denial_on_one_side_is_wrong_and_on_both_is_right() -> None:
    claim, premise = "Dogs are allowed inside.", "Inside, dogs are allowed on a lead."
    found = Counter[tuple[bool, bool, str]]()
    for seed in DRAWS:
        made = denied(supported(claim, premise), Random(seed))
        assert made is not None
        found[made.pair.claim != claim, made.pair.premise != premise, made.label] += 1
        if made.label == "c":
            ((start, end),) = made.spans or ()
            changed = made.pair.claim[start:end]
            assert changed if made.pair.claim == claim else changed not in claim
    assert set(found) <= {(True, False, "c"), (False, True, "c"), (True, True, "e")}
    assert min(found[True, False, "c"], found[False, True, "c"]) > 5


def test_a_word_with_one_opposite_is_denied_on_both_sides_too() -> None:
    claim, premise = "It comes with a lid.", "The pot comes with a lid and a spoon."
    both = [
        made for seed in DRAWS if (made := denied(supported(claim, premise), Random(seed))) and not made.wrong
    ]
    assert {(one.pair.claim, one.pair.premise) for one in both} == {
        ("It comes without a lid.", "The pot comes without a lid and a spoon.")
    }


def test_only_the_sentence_is_denied_where_the_evidence_has_other_words() -> None:
    claim = "You must wait."
    made = [denied(supported(claim), Random(seed)) for seed in DRAWS]
    assert all(one is not None and one.pair.premise == PREMISE and one.label == "c" for one in made)
    assert denied(supported("It has 25 m."), Random(0)) is None


def test_a_restriction_on_one_side_is_wrong_and_on_both_is_right() -> None:
    claim = "The hose of this one may be up to 25 m long."
    found = Counter[tuple[bool, bool, bool]]()
    for seed in DRAWS:
        made = restricted(supported(claim), Random(seed))
        assert made is not None
        assert (made.kind == "condition") == made.wrong
        sides = made.pair.claim != claim, made.pair.premise != PREMISE
        found[*sides, made.wrong] += 1
        if sides[1]:
            assert any(f"25 m long, {text}. | K160" in made.pair.premise for text in RESTRICTIONS)
    assert set(found) == {(True, False, True), (False, True, True), (True, True, False)}
    assert min(found.values()) > 5


def test_what_the_evidence_does_not_say_is_not_restricted() -> None:
    assert all(restricted(supported("Water it twice in spring."), Random(seed)) is None for seed in DRAWS)


def test_each_change_stands_behind_what_it_was_made_of_and_faults_are_left_alone() -> None:
    wrong = LabelledPair(
        Pair(PREMISE, "", "It may have 90 m."), "c", ((11, 15),), "other", "everyday", "number"
    )
    right = [supported(f"The hose may be up to 25 m long in case {number}.") for number in range(50)]
    made = list(by_rules([wrong, *right]))
    assert len(made) >= 2
    assert {one.set for one in made} == {SET}
    assert {one.source for one in made} == {"source"}
    for before, after in zip(made[::2], made[1::2], strict=True):
        assert not before.wrong
        assert before.pair != after.pair
    assert made == list(by_rules([wrong, *right]))
