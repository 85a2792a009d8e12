"""Claims that round or bound what their source has."""

from __future__ import annotations

import pytest

from lrp4rag.claims import agree
from tests.claims.test_value import only


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("about 5 million people", "4.98 million people"),
        ("more than 300,000 visitors", "312,450 visitors"),
        ("about 61 m", "61.4 m"),
        ("over 60 m", "61.4 m"),
        ("almost $50 million", "$48.7 million"),
        ("312,000 visitors", "312,450 visitors"),
        ("up to 10 days", "7 days"),
        ("at least three days", "4 days"),
    ],
)
def test_a_claim_rounds_or_bounds_what_its_source_has(claim: str, source: str) -> None:
    assert agree(only(claim, "quantity"), only(source, "quantity"))


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("more than 300,000 visitors", "290,000 visitors"),
        ("312,450 visitors", "more than 300,000 visitors"),
        ("7 days", "up to 10 days"),
        ("up to 10 days", "up to 14 days"),
        ("at least 21 years", "at least 18 years"),
        ("about 5 million people", "6.2 million people"),
        ("61.2 m", "61.4 m"),
        ("1,520 seats", "1,500 seats"),
        ("\u22125 \u00b0C", "5 \u00b0C"),
        ("5 %", "5 percentage points"),
    ],
)
def test_no_claim_is_more_exact_or_wider_than_its_source(claim: str, source: str) -> None:
    assert not agree(only(claim, "quantity"), only(source, "quantity"))
