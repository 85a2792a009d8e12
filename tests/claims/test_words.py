"""Words that are compared: by their stems, without stop words."""

from __future__ import annotations

import pytest

from lrp4rag.claims.words import content_words, stem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("approve", "approval"),
        ("approved", "approves"),
        ("payments", "payment"),
        ("weeks", "week"),
        ("days", "day"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_content_words_leave_out_stop_words() -> None:
    assert content_words("The pool is NOT open on 24 May") == {"pool", "open", "24"}
