"""Words that are compared: by their stems, without stop words."""

from __future__ import annotations

import pytest

from lrp4rag.claims.words import STOP_WORDS, content_words, stem
from lrp4rag.util.hashes import hash_of


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


def test_stop_words_are_those_that_detectors_learned_with() -> None:
    """A word more or less changes features: `classifiers.vectors` says when to raise `FEATURE_VERSION`."""
    assert hash_of(" ".join(sorted(STOP_WORDS))) == (
        "e570e9b41eab43e963c44d1d8b7ad441d084fa84f1104e01c9e8b41ad43feb89"
    )
