"""Text that looks as what it is not, and text that is only foreign."""

# ruff: noqa: RUF001 - the letters of many scripts look alike

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.disguise import Disguise
from lrp4rag.source import Source

SOURCES = (Source("Items can be returned within 14 days of delivery."),)


def found(response: str, *passages: str) -> list[Finding]:
    sources = tuple(map(Source, passages)) or SOURCES
    return Disguise()(CheckInput("How long?", sources, response))


@pytest.mark.parametrize(
    ("response", "word", "trick"),
    [
        ("It is 3\u200b0 days.", "3\u200b0", "invisible"),
        ("It is true [\u20609].", "[\u20609].", "invisible"),
        ("It is \u202e41\u202c days.", "\u202e41\u202c", "reordered"),
        ("It is n\u043et possible.", "n\u043et", "mixed"),
        ("It is \u0441\u043e\u0440\u0435 again.", "\u0441\u043e\u0440\u0435", "mixed"),
        ("It is \uff19\uff10 days.", "\uff19\uff10", "wide"),
        ("a\U000e0041b", "a\U000e0041b", "invisible"),
    ],
)
def test_what_is_disguised(response: str, word: str, trick: str) -> None:
    (one,) = found(response)
    assert (one.kind, one.details["trick"]) == ("disguised", trick)
    assert response[one.start : one.end] == word
    assert one.words.isprintable(), "it can be seen what cannot be seen"


@pytest.mark.parametrize(
    "response",
    [
        "It is 14 days.",
        "It is 14\u00a0days of an\u00adnual leave \u2013 \u201cat most\u201d\u2026",
        "Grüße aus Łódź, naïve façade, 5 µm, 3 kΩ, ΔT = 2 °C, β-blocker, x² ≤ ∞",
        "Возврат возможен в течение 14 дней.",
        "Die Firma heißt Газпром.",
        "返品は１４日以内です。",
        "👩\u200d🔬 says so",
        "می\u200cخواهم",
        "\u2067שלום\u2069",
    ],
)
def test_what_is_only_foreign(response: str) -> None:
    assert found(response) == []


def test_a_word_that_a_passage_has_is_none() -> None:
    assert found("Its name is n\u043et.", "The product is called n\u043et.") == []


@given(st.text())
def test_any_text_has_findings_with_exact_places(text: str) -> None:
    last = 0
    for one in found(text):
        assert one.start is not None
        assert one.end is not None
        assert last <= one.start < one.end <= len(text)
        last = one.end
