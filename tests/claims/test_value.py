"""Whether two values say the same, and that values stand where they say."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.claims import Value, agree, comparable, find_values
from lrp4rag.claims.value import without_overlaps

_PHRASES = (
    "two weeks", "14 days", "18 months", "a year and a half", "Sept 3", "3 September 2021", "on 3.9.",
    "in March", "9 am", "12:30", "noon", "midnight", "per month", "weekly", "every day", "Trim 450",
    "Piet Harmsen", "Harmsen", "Anna Anna", "Anna Berg", "EU", "European Union", "must not", "may", "cannot",
    "before", "at most", "up to", "Passage 2", "passages 1 and 3", "[2]", "the passages do not say",
    "half a million", "5 %", "\u00a330", "12", "20 to 60 mm", "200 \u00b0C", "1990s", "13/9/2021",
    "1/2/2021", "v3.11", "on Monday", "New Year's Eve", "E4",
)  # fmt: skip
_TEXTS = st.lists(st.sampled_from(_PHRASES), min_size=1, max_size=6).map(" and ".join)


def only(text: str, kind: str) -> Value:
    """The one value of a kind in a text."""
    (found,) = [one for one in find_values(text) if one.kind == kind]
    return found


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("quantity", "It takes two weeks.", "It takes 14 days."),
        ("quantity", "within 18 months", "within a year and a half"),
        ("quantity", "after a quarter of an hour", "after 15 minutes"),
        ("quantity", "nineteen per cent", "19 %"),
        ("quantity", "940 million dollars", "$0.94 billion"),
        ("quantity", "a fee of \u00a330", "a fee of 30 pounds sterling"),
        ("quantity", "356 \u00b0F", "180 \u00b0C"),
        ("quantity", "25 working days", "twenty-five of them"),
        ("date", "by Sept 3", "by 3.9. we"),
        ("date", "in March 2021", "on 3 March 2021"),
        ("date", "on 31 December", "on New Year's Eve"),
        ("date", "on 2021-03-05", "on March 5th, 2021"),
        ("date", "at the weekend", "on Sundays"),
        ("date", "on weekdays", "on Fridays"),
        ("time", "at 9 am", "at 9:00"),
        ("time", "at noon", "at 12:00"),
        ("period", "once per month", "a monthly fee"),
        ("name", "asked Harmsen", "asked Piet Harmsen"),
        ("name", "all PINs", "a PIN"),
        ("name", "in the EU", "in the European Union"),
        ("polarity", "You must not smoke", "You mustn't smoke"),
        ("polarity", "It isn't so", "It is not so"),
        ("polarity", "no more than", "at most"),
        ("reference", "passages 3 and 1", "Passages 1 and 3"),
    ],
)
def test_the_same_in_other_words_agrees(kind: str, one: str, other: str) -> None:
    assert agree(only(one, kind), only(other, kind))


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("quantity", "16 weeks", "18 weeks"),
        ("quantity", "4 mm", "4 cm"),
        ("quantity", "5 %", "5 kg"),
        ("quantity", "$30", "\u20ac30"),
        ("quantity", "200 \u00b0C", "200 \u00b0F"),
        ("quantity", "2nd", "2 doors"),
        ("date", "in March 2021", "in March 2020"),
        ("date", "on 3 April", "on 4 April"),
        ("date", "on Monday", "on 3 April"),
        ("date", "on weekdays", "at weekends"),
        ("date", "on weekdays", "on Saturdays"),
        ("time", "at 9 am", "at 9 pm"),
        ("period", "per month", "per year"),
        ("name", "asked Ada Berg", "asked Ada Holm"),
        ("polarity", "it may", "it may not"),
        ("polarity", "before", "after"),
        ("reference", "Passage 1", "Passage 2"),
    ],
)
def test_another_statement_does_not_agree(kind: str, one: str, other: str) -> None:
    assert not agree(only(one, kind), only(other, kind))


@pytest.mark.parametrize(
    ("one", "other", "expected"), [("must not", "must", True), ("must not", "before", False)]
)
def test_polarity_is_compared_within_a_family(one: str, other: str, expected: bool) -> None:
    assert comparable(only(one, "polarity"), only(other, "polarity")) is expected


def test_names_with_repeated_words_agree_both_ways() -> None:
    one = Value("name", 0, 1, "", key=("anna", "anna"))
    other = Value("name", 0, 1, "", key=("anna", "berg"))
    assert agree(one, other)
    assert agree(other, one)


@settings(max_examples=60, deadline=None)
@given(_TEXTS, _TEXTS)
def test_agreement_is_reflexive_and_but_of_quantities_symmetric(one: str, other: str) -> None:
    values = find_values(one) + find_values(other)
    assert values
    for a in values:
        assert agree(a, a)
        for b in values:
            assert a.kind == "quantity" or agree(a, b) == agree(b, a)


def test_a_shifted_value_is_the_same_elsewhere() -> None:
    value = only("in 14 days", "quantity")
    shifted = value.shifted(10)
    assert (shifted.start, shifted.end) == (value.start + 10, value.end + 10)
    assert agree(shifted, value)
    assert math.isclose(shifted.amount, value.amount)


def test_the_first_of_overlapping_values_stays() -> None:
    spans = [(5, 9), (0, 5), (8, 12), (9, 10), (2, 3)]
    kept = without_overlaps(Value("name", start, end, "") for start, end in spans)
    assert [(one.start, one.end) for one in kept] == [(5, 9), (0, 5), (9, 10)]


def test_importing_values_loads_no_large_library() -> None:
    large = "{'text_to_num', 'sklearn', 'sentencex'}"
    code = f"import sys, lrp4rag.claims; print({large} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
