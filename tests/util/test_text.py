"""Texts are cut between words only, and words are the same however their accents are written."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.util.text import clipped, inside_sign, one_line, whole_words, words_of


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("Zoe\u0308 left", "Zoe", "Zoe\u0308"),
        ("Le Ha\u0302vre is", "vre", "Ha\u0302vre"),
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
            "\u0939",
            "\u0939\u093f\u0928\u094d\u0926\u0940",
        ),
        ("31,000 metres", "000", "31,000"),
        ("31\u202f000 m", "31", "31\u202f000"),
        ("12 345 678 kg", "345", "12 345 678"),
        ("In 2019 300 came", "300", "300"),
        ("3.5 m", "5", "3.5"),
        ("You don\u2019t go", "don", "don\u2019t"),
        ("Ann's book", "Ann", "Ann"),
        ("a \U0001f469\u200d\U0001f52c b", "\U0001f469", "\U0001f469\u200d\U0001f52c"),
        ("It ends. So", "ends", "ends"),
    ],
)
def test_a_part_is_widened_to_whole_words_numbers_and_signs(text: str, part: str, whole: str) -> None:
    start = text.index(part)
    first, last = whole_words(text, start, start + len(part))
    assert text[first:last] == whole


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("In the final Pritchard scored twice", 31, "In the final Pritchard scored\u2026"),
        ("An adult may take not more than 6 tablets a day", 34, "An adult may take not more than\u2026"),
        ("It costs 1,000,000 crowns in all", 15, "It costs\u2026"),
        ("x" * 30, 10, "x" * 9 + "\u2026"),
        ("e\u0301" * 10, 10, "e\u0301" * 4 + "\u2026"),
        ("short", 10, "short"),
    ],
)
def test_a_line_is_cut_between_words_and_not_behind_a_number(text: str, limit: int, shown: str) -> None:
    assert one_line(text, limit) == shown


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="ab1, .\u0301\u093f\u200d\U0001f469\U0001f1e9\U0001f1ea\n", max_size=60),
    st.integers(2, 40),
)
def test_no_cut_is_longer_than_asked_for_or_inside_a_sign(text: str, limit: int) -> None:
    line = one_line(text)
    shown = one_line(text, limit)
    assert len(shown) <= limit
    if shown != line:
        kept = shown.removesuffix("\u2026")
        assert line.startswith(kept)
        assert len(kept) < 2 or line[len(kept)] == " " or not inside_sign(line, len(kept))
    for place in range(len(text) + 1):
        start, end = whole_words(text, place, place)
        assert start <= place <= end
    assert text.startswith(clipped(text, limit).split(" \u2026 (")[0])


@pytest.mark.parametrize("text", ["Zo\u00eb \u00c9mile", "\u1e69\u0323 \ud55c\uad6d", "stra\u00dfe"])
def test_words_are_one_however_their_accents_are_written(text: str) -> None:
    composed, taken_apart = (words_of(unicodedata.normalize(form, text)) for form in ("NFC", "NFD"))
    assert composed == taken_apart == unicodedata.normalize("NFC", text).lower().split()
