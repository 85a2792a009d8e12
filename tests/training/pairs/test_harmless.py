"""Harmless changes: what each kind writes, and that no value changes."""

from __future__ import annotations

from random import Random

import pytest

from lrp4rag.claims.find import find_values
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import agree
from lrp4rag.training.pairs.corrupt import reworded
from lrp4rag.training.pairs.edit import Draft, apply
from lrp4rag.training.pairs.harmless import HARMLESS
from tests.training.pairs.texts import ALL, of


def made(kind, response):
    """Every response that one edit of a kind makes, over many seeds."""
    draft = Draft(of(response))
    return {apply(response, [edit])[0] for seed in range(20) for edit in HARMLESS[kind](draft, Random(seed))}


@pytest.mark.parametrize(
    ("kind", "response", "expected"),
    [
        ("synonym", "It is usually dry there.", "It is generally dry there."),
        ("synonym", "Usually it is dry.", "Normally it is dry."),
        ("synonym", "You cannot park there.", "You can't park there."),
        ("reworded value", "The course lasts 14 days in all.", "The course lasts two weeks in all."),
        ("reworded value", "The course lasts 14 days in all.", "The course lasts fourteen days in all."),
        ("reworded value", "The tour takes 90 minutes by bus.", "The tour takes an hour and a half by bus."),
        ("reworded value", "The tour has seven stops in town.", "The tour has 7 stops in town."),
        ("reworded value", "Fees rose by 3% in May.", "Fees rose by 3 percent in May."),
        ("reworded value", "It opened on 3 September 2021.", "It opened on September 3, 2021."),
        ("reworded value", "It opened on September 3, 2021.", "It opened on 3 September 2021."),
        ("reworded value", "Feed it twice a day with oats.", "Feed it twice per day with oats."),
        ("clauses", "If the lamp blinks, the desk is closed.", "The desk is closed if the lamp blinks."),
        ("clauses", "The desk is closed when the lamp blinks.", "When the lamp blinks, the desk is closed."),
        ("order", "The roof is red. The door is blue.", "The door is blue. The roof is red."),
    ],
)
def test_what_a_kind_writes(kind, response, expected):
    assert expected in made(kind, response)


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        ("synonym", 'The sign says "usually closed".'),
        ("synonym", "Ask at Big Apple Tours."),
        ("reworded value", "Bake it for 20 to 30 minutes."),
        ("reworded value", "Add 1/2 cup and go to step 3."),
        ("reworded value", "One of the doors is open."),
        ("clauses", "Ask the desk if the lamp is broken today."),
        ("order", "Boil the water. Add the pasta."),
        ("order", "The roof is red. It is also steep."),
    ],
)
def test_where_another_meaning_would_come_of_it(kind, response):
    assert made(kind, response) == set()


def test_a_rate_is_not_counted_in_a_longer_unit():
    assert not any("one week" in one for one in made("reworded value", "The shop is open 7 days a week."))


def test_reworded_examples_keep_all_values_and_have_no_labels():
    for example in ALL:
        draft = Draft(example)
        for seed in range(10):
            twin = reworded(draft, Random(seed))
            assert twin is not None
            assert twin.labels == ()
            assert twin.response != example.response
            values = find_values(twin.response, Surroundings(" ".join(twin.passages)))
            assert all(any(agree(value, one) for one in draft.values) for value in values)


def test_what_cannot_be_said_otherwise_gives_nothing():
    assert reworded(Draft(of("Blue.")), Random(0)) is None
