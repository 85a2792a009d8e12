"""Which passages say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.checks.gate.duplicates import Wordings, wording

FRUIT = ("apples", "pears", "plums", "cherries", "peaches", "quinces", "melons", "grapes")
LONG = " ".join(f"the {fruit} in this shop come from the {fruit} farm" for fruit in FRUIT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The office opens at 9.", "the  office opens\nat 9"),
        ("The \ufb01rst caf\u00e9", "The first cafe\u0301"),
        ("\u201cYes\u201d \u2013 always", '"Yes" - always'),
        ("\u7b2c\u4e00\u6761", "\u7b2c\u4e00\u6761 "),
        ("???", " ??? "),
        (LONG, f"{LONG} and so forth"),
        (LONG, LONG.replace("shop come", "store come", 1)),
    ],
)
def test_these_say_the_same(one: str, other: str) -> None:
    assert wording(one).is_like(wording(other))
    assert wording(other).is_like(wording(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The office opens at 9.", "The office opens at 10."),
        ("The office opens.", "The shop opens."),
        ("???", "!!!"),
        ("The fee is 25 %.", "The fee is 25 \u20ac."),
        ("Keep it at -5 degrees.", "Keep it at 5 degrees."),
        ("It must be < 5.", "It must be > 5."),
        ("", "a"),
        (f"{LONG} for 14 days", f"{LONG} for 30 days"),
        (f"{LONG} for two days", f"{LONG} for three days"),
        (f"{LONG} for a week", f"{LONG} for a month"),
        (f"{LONG} which is good", f"{LONG} which is not good"),
        (f"{LONG} which don't last", f"{LONG} which do last"),
        (f"{LONG} says Harmsen", f"{LONG} says Jansen"),
        (f"{LONG} before noon", f"{LONG} after noon"),
        (f"{LONG} in March", f"{LONG} in April"),
        (LONG, f"{LONG} {LONG[::-1]}"),
    ],
)
def test_these_do_not(one: str, other: str) -> None:
    assert not wording(one).is_like(wording(other))
    assert not wording(other).is_like(wording(one))


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_like_itself_and_likeness_is_mutual(one: str, other: str) -> None:
    assert wording(one).is_like(wording(one))
    assert wording(one).is_like(wording(other)) == wording(other).is_like(wording(one))


def test_the_first_that_is_like_it_is_found() -> None:
    seen, ticks = Wordings(), list[None]()
    for text in ("a b c", LONG, f"{LONG} and so on", "a b c d"):
        seen.add(wording(text))
    assert seen.like(wording(f"{LONG} and so forth"), lambda: ticks.append(None)) == 1
    assert seen.like(wording("A, B, C!"), lambda: ticks.append(None)) == 0
    assert seen.like(wording("x y z"), lambda: ticks.append(None)) is None
    assert len(ticks) <= 4


def test_passages_that_share_nothing_are_not_compared() -> None:
    seen, ticks = Wordings(), list[None]()
    for number in range(2000):
        own = wording(" ".join(f"w{number}x{k}" for k in range(30)))
        assert seen.like(own, lambda: ticks.append(None)) is None
        seen.add(own)
    assert not ticks
