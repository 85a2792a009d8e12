"""Which pieces of a response claim a fact. The paper trains a classifier; these few rules are ours."""

from __future__ import annotations

import re

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from lrp4rag.features.text import words_of
from lrp4rag.sentences import split_sentences

CONTENT_WORDS = 2
"""Fewer words that are no stop words claim nothing."""

_SOURCE = (
    r"(?:(?:the|these|those|this) )?(?:(?:given|provided|above|following) )*"
    r"(?:passages?|context|text|documents?|information)"
)
# Struck out of a sentence: courtesies at its start, and where it says what it goes by or announces.
_PHRASES = re.compile(
    r"^(?:(?:sure|certainly|of course|absolutely|hello|hi|hey|yes|no)\b[\s,.!:]*)+"
    r"|\bhere (?:is|are)\b[^:.]*:"
    r"|\b(?:based (?:\w+ )?on|according to|as (?:mentioned|stated|described) in) "
    rf"{_SOURCE}\b(?: (?:provided|given|above))?",
    re.IGNORECASE,
)
# Sentences that are struck out whole: questions, courtesies, what is said of the passages or of the answer.
_WHOLE = re.compile(
    r"\?\W*$"
    r"|^(?:i hope|let me know|feel free|thanks?\b|thank you|you(?:'re| are) welcome)"
    r"|\b(?:unable|not able|impossible|not possible) to (?:answer|determine|say)"
    r"|\bcan(?:not|'t| not) (?:be )?(?:answer|determine)"
    rf"|\b{_SOURCE}\b[^.]{{0,40}}\b(?:do|does|did)(?: not|n't) "
    r"(?:\w+ )?(?:mention|contain|provide|specify|say|state|include|give|discuss|answer)",
    re.IGNORECASE,
)


def claims_fact(text: str) -> bool:
    """Whether enough content words are left once questions, courtesies and statements about the passages or
    the answer are struck out."""
    left = (_left(text[start:end]) for start, end in split_sentences(text))
    words = [word for part in left for word in words_of(part) if word not in ENGLISH_STOP_WORDS]
    return len(words) >= CONTENT_WORDS


def _left(sentence: str) -> str:
    """What a sentence says, without what is struck out."""
    return "" if _WHOLE.search(sentence) else _PHRASES.sub("", sentence)
