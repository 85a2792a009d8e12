"""Sentences of answers become pairs with what is known of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lrp4rag.example import Example, Label
from lrp4rag.training.labelled_pairs import answer_pairs, distinct, label_of

RESPONSE = "Hello! The old bridge over the river was built in 1890. It is 40 metres long and was painted red."
EXAMPLE = Example(
    "When was the bridge built?",
    ["The old bridge was built in 1870. It is 40 metres long."],
    RESPONSE,
    source="bridge",
    labels=(
        Label(RESPONSE.index("1890"), RESPONSE.index("1890") + 4, "number"),
        Label(RESPONSE.index("painted"), RESPONSE.index("red") + 3, "invention"),
        Label(RESPONSE.index("40"), RESPONSE.index("40") + 2, "number"),
    ),
)


def test_sentences_have_their_own_labels_and_greetings_none() -> None:
    built, long = answer_pairs([EXAMPLE], "everyday")
    assert built.pair.claim == "The old bridge over the river was built in 1890."
    assert built.pair.lead == EXAMPLE.question
    assert "built in 1870" in built.pair.premise
    assert [built.pair.claim[start:end] for start, end in built.spans] == ["1890"]
    assert (built.label, built.kind, built.source, built.set) == ("c", "number", "bridge", "everyday")
    # It points back, and its longest fault decides.
    assert long.pair.lead == f"{EXAMPLE.question} {built.pair.claim}"
    assert [long.pair.claim[start:end] for start, end in long.spans] == ["painted red", "40"]
    assert (long.label, long.kind, long.wrong) == ("n", "invention", True)


def test_a_label_over_two_sentences_is_cut_at_each() -> None:
    start, end = RESPONSE.index("1890"), RESPONSE.index("metres")
    pairs = answer_pairs([replace(EXAMPLE, labels=(Label(start, end, "misattributed"),))], "everyday")
    assert [one.pair.claim[slice(*span)] for one in pairs for span in one.spans] == ["1890.", "It is 40 "]
    assert [one.label for one in pairs] == ["not_e", "not_e"]


def test_right_sentences_are_told_once() -> None:
    right = answer_pairs([replace(EXAMPLE, labels=(), id=name) for name in "ab"], "everyday")
    assert [(one.label, one.spans, one.kind) for one in right] == [("e", (), "")] * 4
    again = answer_pairs([replace(EXAMPLE, labels=())], "everyday-evidence")
    assert distinct([*right, *again]) == right[:2]
    wrong = answer_pairs([EXAMPLE], "everyday")
    assert distinct([*right, *wrong]) == [*right[:2], *wrong]


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("date or unit", "c"),
        ("negation", "c"),
        ("Subtle Conflict", "c"),
        ("invention", "n"),
        ("Evident Baseless Info", "n"),
        ("condition", "not_e"),
        ("refusal", "not_e"),
        ("", "not_e"),
    ],
)
def test_kinds_say_what_the_evidence_tells(kind: str, label: str) -> None:
    assert label_of(kind) == label
