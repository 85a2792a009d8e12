"""Edits: offsets, the marks of what was taken out, and what no edit may do."""

from __future__ import annotations

from random import Random

import pytest

from lrp4rag.training.pairs.edit import Draft, Edit, apply
from tests.training.pairs.texts import of

TEXT = "One fine day, two cats sat.\nThree dogs ran."


@pytest.mark.parametrize(
    ("edits", "made", "marked"),
    [
        ([(0, 3, "Two")], "Two fine day, two cats sat.\nThree dogs ran.", ["Two"]),
        ([(14, 17, "nine"), (0, 3, "No")], "No fine day, nine cats sat.\nThree dogs ran.", ["No", "nine"]),
        (
            [(27, 27, " It rained.")],
            "One fine day, two cats sat. It rained.\nThree dogs ran.",
            ["It rained."],
        ),
        ([(4, 9, "")], "One day, two cats sat.\nThree dogs ran.", ["One"]),
        ([(0, 4, "")], "fine day, two cats sat.\nThree dogs ran.", ["fine"]),
        ([(0, len(TEXT), "  ")], "  ", ["  "]),
    ],
    ids=["replaced", "two", "inserted", "taken out", "taken out first", "nothing left"],
)
def test_spans_are_what_was_written_or_a_word_beside_what_is_gone(edits, made, marked):
    response, spans = apply(TEXT, [Edit("k", *edit) for edit in edits])
    assert response == made
    assert [response[start:end] for start, end in spans] == marked


def test_spans_stay_exact_under_any_edits():
    random = Random(0)
    for _ in range(300):
        places = sorted(random.sample(range(len(TEXT)), 6))
        stretches = zip(places[::2], places[1::2], strict=True)
        texts = ["x", "new words", "\u00fc\U0001f600"]
        edits = [Edit("k", *stretch, random.choice(texts)) for stretch in stretches]
        response, spans = apply(TEXT, random.sample(edits, len(edits)))
        outside, cursor = "", 0
        for edit, (start, end) in zip(edits, spans, strict=True):
            assert response[start:end] == edit.text
            outside += response[cursor:start]
            cursor = end
        kept = [
            TEXT[end:start] for end, start in zip([0, *places[1::2]], [*places[::2], len(TEXT)], strict=True)
        ]
        assert outside + response[cursor:] == "".join(kept)


@pytest.mark.parametrize(
    ("response", "old", "new", "fits"),
    [
        ("Eat an apple.", "apple", "pear", False),
        ("Eat an apple.", "apple", "orange", True),
        ("Take an 8 km walk.", "8", "5", False),
        ("Take a 5 km walk.", "5", "11", False),
        ("Only members enter.", "Only ", "", False),
        ("Can it swim?", "swim", "sink", False),
        ("It can swim.", "swim", "swim", False),
        ("It can swim.", "swim", "sink", True),
    ],
)
def test_what_would_be_no_sentence_is_no_edit(response, old, new, fits):
    start = response.index(old)
    assert (Draft(of(response)).edit("k", start, start + len(old), new) is not None) == fits


def test_edits_that_touch_are_not_apart():
    edit = Edit("k", 3, 5, "x")
    assert edit.apart_from([])
    assert edit.apart_from([Edit("k", 6, 7, "y"), Edit("k", 0, 2, "z")])
    assert not edit.apart_from([Edit("k", 5, 5, "y")])
