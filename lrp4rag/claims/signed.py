"""Clauses of a text, and which of their words are denied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lrp4rag.claims.lexicon import base, is_listed
from lrp4rag.claims.words import STOP_WORDS, word_set

REACH = 9
"""Words behind a denial that it denies, at most."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+(?:[.,:]\d+)*")
_BORDER = re.compile(
    r"[;:()\u2013\u2014\n]|,(?!\d)|(?<=[.!?])\s|\s-\s|\b(?:except (?:where|if|when|that|for)|unless|but|while"
    "|whereas|although|though|because|since|so|which|who|where|if|provided|as long as|until|when|once|except"
    r"|yet|however|as|and (?=(?:\w+ ){0,3}(?:is|are|was|were|has|have|had|may|must|can|cannot|will|do|does"
    r"|did|should|would|need|needs|gets?|pays?|costs?)\b))\b",
    re.IGNORECASE,
)
_DENYING = word_set(
    """
not no never without cannot nor neither hardly barely scarcely except exception apart excluding unless nobody
nothing none instead free lacks lacking lack fail fails failed failing refuse refuses refused minus avoid
avoids stop stops prevent prevents against rather unlike
"""
)
"""Words that deny the words behind them."""
_NEGATIVE = word_set(
    """
excluded exclude excludes forbidden forbid forbids prohibited banned ban rejected denied impossible unable
unavailable invalid void barred ineligible exempt lapses lapse forbidding missing absent lost spared cancelled
dropped gone abolished
"""
)
"""Words that deny what their clause is about."""
_NO_DENIAL = re.compile(
    r"(?:no|not) (?:more|less|later|fewer|earlier|longer than|older|sooner|only|just|merely|until)\b"
    r"|no\.? ?\d|rather (?!than)|(?:stops?|instead)\b(?! of)|free\b(?! (?:of|from)\b(?! charge))"
    r"|none (?:other|the less)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """Characters `start` to `end` of a text, the `base` form there, and whether the word is denied (-1) or
    not (1)."""

    start: int
    end: int
    base: str
    sign: int


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start` to `end` of a text, the words with content there, and whether it denies something
    (-1) or not (1): two denials cancel out."""

    start: int
    end: int
    content: tuple[Word, ...]
    sign: int


def signed_clauses(text: str, start: int = 0, end: int | None = None) -> Iterator[Clause]:
    """Yield the clauses of the characters `start` to `end` of a text that have a word, in its order."""
    end = len(text) if end is None else end
    cuts = [start]
    for match in _BORDER.finditer(text, start, end):
        cuts.append(match.start() if match[0][0].isalpha() else match.end())
    for first, last in zip(cuts, [*cuts[1:], end], strict=True):
        if _WORD.search(text, first, last):
            yield _clause(text, first, last)


def _clause(text: str, start: int, end: int) -> Clause:
    content: list[Word] = []
    reach, denial, sign = 0, 1, 1
    follows = False  # a word with content
    for match in _WORD.finditer(text, start, end):
        plain = match[0].lower().replace("\u2019", "'")
        current = denial if reach > 0 else 1
        denies = (plain in _DENYING or plain.endswith("n't")) and not _NO_DENIAL.match(text, match.start())
        if denies:
            denial, reach = -current, REACH
            sign *= 1 if plain == "against" else -1
        elif plain in _NEGATIVE:
            sign = -sign
        if follows and is_listed(phrase := f"{content[-1].base}_{plain}"):  # "give back" is to return
            last = content.pop()
            content.append(Word(last.start, match.end(), phrase, last.sign))
        else:
            follows = not denies and (plain[0].isdigit() or (plain not in STOP_WORDS and len(plain) > 1))
            if follows:
                content.append(Word(*match.span(), base(plain), current))
        reach -= 1
    return Clause(start, end, tuple(content), sign)
