"""Texts as they read, and where their characters stand in the original."""

# ruff: noqa: RUF001 - the letters of many scripts look alike

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.checks.plain import plain, squeezed


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("two  spaces,\t\u00a0a tab", "two spaces, a tab"),
        ("a line \r\n\n break", "a line\nbreak"),
        ("un\u200bseen so\u00adft ta\U000e0041g", "unseen soft tag"),
        ("**bold** in*wo*rd snake_case", "**bold** inword snake case"),
        ("Ａ１ 𝟗 ﬁx ⓐ", "A1 9 fix a"),
        ("nоt sорe", "not sope"),
        ("<b>bo</b>ld<br>new &amp; &#111;ld &unknown;", "bold\nnew & old &unknown;"),
        ("cafe\u0301 i\u0336s", "café is"),
        ("divi-\nded, two-fold", "divided, two-fold"),
        ("<|im_start|> <<SYS>> a < b", "<|im start|> <<SYS>> a < b"),
    ],
)
def test_a_text_as_it_reads(text: str, read: str) -> None:
    assert plain(text).text == read


@pytest.mark.parametrize(
    "text",
    [
        "Возврат в течение 14 дней.",
        "5 kΩ, 3 µm, x² ≤ ½, β-blocker",
        "返品は14日以内",
        "Grüße",
        "می\u0647",
    ],
)
def test_what_is_only_foreign_stays(text: str) -> None:
    assert plain(text).text == text


def test_places_are_those_of_the_original() -> None:
    text = "So:  **Ig\u200bno\u00adre**  &#97;ll"
    read = plain(text)
    assert [text[read.place(read.text.index(letter))] for letter in "Igre"] == list("Igre")
    assert read.place(read.text.index("all")) == text.index("&")
    letters = squeezed(read.text)
    assert letters.text == "soignoreall"
    assert text[read.place(letters.place(letters.text.index("r")))] == "r"


@given(
    st.text(
        alphabet=st.one_of(st.sampled_from("ab *_\n\u200b\u00ad<>&;#-о\u0301\U000e0041"), st.characters())
    )
)
def test_places_of_any_text_are_in_it_and_in_order(text: str) -> None:
    read = plain(text)
    places = [read.place(index) for index in range(len(read.text))]
    assert all(0 <= place < len(text) for place in places)
    assert len(read.text) == len(places)
    letters = squeezed(read.text)
    assert all(0 <= letters.place(index) < len(read.text) for index in range(len(letters.text)))
