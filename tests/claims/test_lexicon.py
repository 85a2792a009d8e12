"""Words of one sense and of opposite senses."""

from __future__ import annotations

import pytest

from lrp4rag.claims.lexicon import base, relation


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("went", "go"),
        ("costs", "cost"),
        ("stopped", "stop"),
        ("cheaper", "cheap"),
        ("qwertz", "qwertz"),
        ("", ""),
    ],
)
def test_base(word: str, expected: str) -> None:
    assert base(word) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("cheap", "expensive", "opposite"),
        ("optional", "compulsory", "opposite"),
        ("safe", "unsafe", "opposite"),
        ("harmful", "harmless", "opposite"),
        ("give_back", "repay", "synonym"),
        ("approve", "approval", "same"),
        ("tower", "fish", ""),
    ],
)
def test_relation_is_symmetric(first: str, second: str, expected: str) -> None:
    assert relation(first, second) == relation(second, first) == expected
