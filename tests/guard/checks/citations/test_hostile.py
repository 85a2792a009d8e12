"""Hostile answers and passages: the check says something or runs out of its budget, in linear time."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lrp4rag.guard.checks.check import CheckInput, OverBudget
from lrp4rag.guard.checks.citations import Citations
from lrp4rag.source import Source

SOURCES = (Source("Lunch costs 6 euros. Section 4.2 applies.", id="a-1", title="Menu Policy"), Source("x"))
LONG = 200_000
PIECES = st.sampled_from(
    ["[", "]", "(", ")", "[1]", "[^1]", "[^1]:", "Passage ", "1", "0", "\u00b9", "`", "```", "Section 4.2",
     "\n", "ISO 27001:2022 8.1", " ", "Menu Policy", "according to ", "\ud800", "\x00", "a-1", "](", "![",
     "\u3010", "v1.", "Article 17 GDPR", "-", ",", "and", "<sup>", "of the ", "\"",
     "et al.", "(Smith, 2020)", "study by ", "studies show", "memo ", "notice of 3 May", "https://", "said: "]
)  # fmt: skip


@example("*Section 4.2")
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_any_text_gets_findings_with_exact_places(text: str) -> None:
    for sources in (SOURCES, (Source(text, id=text, title=text), *SOURCES)):
        last = 0
        for one in Citations()(CheckInput("", sources, text)):
            assert one.start is not None
            assert one.end is not None
            assert last <= one.start < one.end <= len(text)
            assert one.kind in ("verified", "misattributed", "fabricated")
            assert all(0 <= k < len(sources) for k in one.passages)
            assert len(one.words) < 250
            last = one.end


QUICK = [
    "[",
    "[1, ",
    "(",
    "0",
    "`",
    "A ",
    "Aa of the ",
    "\u00a7",
    "1.",
    "ISO ",
    "[^1]: x\n",
    '"',
    "*",
    "<sup>",
]
CITE = ["Section 4.2 ", "Word [1]. ", "[1-999999]", "\u00b9"]
CITE_TOO = ["[1]", "passage 1 ", "[a](b) ", "Menu Policy ", "a-1 ", "[^1] ", "[1] x\n", "Article 1 and "]


@pytest.mark.parametrize(
    "piece", [*QUICK, *CITE, *(pytest.param(one, marks=pytest.mark.slow) for one in CITE_TOO)]
)
def test_long_answers_cost_a_bounded_time(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    begin = time.monotonic()
    with suppress(OverBudget):
        Citations()(CheckInput("", SOURCES, text))
    assert time.monotonic() - begin < 60


def test_it_stops_at_its_deadline() -> None:
    past = CheckInput("", SOURCES, "Lunch costs 6 euros [1].", deadline=0.0)
    with pytest.raises(OverBudget):
        Citations()(past)


def test_more_different_citations_than_it_may_judge_are_over_budget() -> None:
    text = " ".join(f"Lunch costs {k} euros [1]." for k in range(30))
    with pytest.raises(OverBudget):
        Citations(most=20)(CheckInput("", SOURCES, text))
