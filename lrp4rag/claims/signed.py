"""Clauses of a text, and which of their words are denied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lrp4rag.claims.lexicon import base, is_listed
from lrp4rag.claims.words import stop_words, word_set

REACH = 9
"""Words behind a denial that it denies, at most."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+(?:[.,:]\d+)*")
_BORDER = re.compile(
    r"[;:()\u2013\u2014\n]|,(?!\d)|(?<=[.!?])\s|\s-\s"
    r"|\b(?:except (?:where|if|when|that|for)|unless|but|while|whereas|although|though|because|since|so"
    r"|which|who"
    r"|where|if|provided|as long as|until|when|once|except|yet|however|as|and (?=(?:\w+ ){0,3}(?:is|are"
    r"|was|were"
    r"|has|have|had|may|must|can|cannot|will|do|does|did|should|would|need|needs|gets?|pays?|costs?)\b))\b",
    re.IGNORECASE,
)
_DENYING = word_set(
    """
not no never without cannot nor neither hardly barely scarcely except exception apart excluding unless nobody
nothing none instead free lacks lacking lack fail fails failed failing refuse refuses refused minus avoid
avoids stop stops prevent prevents against rather unlike
"""
)
"""They deny the words behind them."""
_NEGATIVE = word_set(
    """
excluded exclude excludes forbidden forbid forbids prohibited banned ban rejected denied impossible unable
unavailable invalid void barred ineligible exempt lapses lapse forbidding missing absent lost spared cancelled
dropped gone abolished
"""
)
"""They deny what their clause is about."""
_NO_DENIAL = re.compile(
    r"(?:no|not) (?:more|less|later|fewer|earlier|longer than|older|sooner|only|just|merely|until)\b"
    r"|no\.? ?\d|rather (?!than)|(?:stops?|instead)\b(?! of)|free\b(?! (?:of|from)\b(?! charge))"
    r"|none (?:other|the less)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """Characters `start` to `end` of a text, the `base` form there, whether the word is denied (-1) or not
    (1), and whether it carries content."""

    start: int
    end: int
    base: str
    sign: int
    is_content: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """Characters `start` to `end` of a text, the words there, and whether it denies something (-1) or not
    (1): two denials cancel out."""

    start: int
    end: int
    words: tuple[Word, ...]
    sign: int

    @property
    def content(self) -> tuple[Word, ...]:
        """The words that carry content."""
        return tuple(word for word in self.words if word.is_content)


def signed_clauses(text: str, start: int = 0, end: int | None = None) -> Iterator[Clause]:
    """Yield the clauses of the characters `start` to `end` of a text that have a word, in its order."""
    end = len(text) if end is None else end
    cuts = [start]
    for match in _BORDER.finditer(text, start, end):
        cuts.append(match.start() if match[0][0].isalpha() else match.end())
    for first, last in zip(cuts, [*cuts[1:], end], strict=True):
        clause = _clause(text, first, last)
        if clause.words:
            yield clause


def _clause(text: str, start: int, end: int) -> Clause:
    words: list[Word] = []
    reach, denial, sign = 0, 1, 1
    for match in _WORD.finditer(text, start, end):
        plain = match[0].lower().replace("\u2019", "'")
        current = denial if reach > 0 else 1
        denies = (plain in _DENYING or plain.endswith("n't")) and not _NO_DENIAL.match(text, match.start())
        if denies:
            denial, reach = -current, REACH
            sign *= 1 if plain == "against" else -1
        elif plain in _NEGATIVE:
            sign = -sign
        phrase = f"{words[-1].base}_{plain}" if words else ""
        if phrase and is_listed(phrase) and words[-1].is_content:  # "give back" is to return
            last = words.pop()
            words.append(Word(last.start, match.end(), phrase, last.sign, True))
        else:
            content = not denies and (plain[0].isdigit() or (plain not in stop_words() and len(plain) > 1))
            words.append(Word(*match.span(), base(plain), current, content))
        reach -= 1
    return Clause(start, end, tuple(words), sign)
