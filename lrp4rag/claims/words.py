"""Words that carry content, and their stems."""

from __future__ import annotations

import functools
import re

from lrp4rag.claims.stopwords import ENGLISH
from lrp4rag.util.text import words_of


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list, which white space parts."""
    return frozenset(words.split())


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that are not English stop words."""
    return frozenset(stem(word) for word in words_of(text) if word not in stop_words())


@functools.lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Strip a word's commonest endings: enough to match "approve" with "approval"."""
    if word[:1].isdigit() or len(word) < 5:
        return word.removesuffix("s") if len(word) == 4 else word
    return re.sub(r"(?:ations?|ments?|ings?|ally|als?|ely|ed|es|ly|e|s|y|i)\Z", "", word)[:9]


def stop_words() -> frozenset[str]:
    """Return English's most frequent words, in small letters."""
    return ENGLISH
