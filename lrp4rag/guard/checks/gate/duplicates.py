"""Passages that say the same: equal but for case, white space and punctuation, or nearly so."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from lrp4rag.claims.dates import MONTHS, WEEKDAYS
from lrp4rag.claims.polarity import OPPOSITES
from lrp4rag.claims.quantities import ONES, TEENS
from lrp4rag.claims.units import MONEY, UNITS
from lrp4rag.util.text import normal

ALIKE = 0.9
"""Share of the runs of words of two passages that both have, from which they are near duplicates."""
_RUN = 3
_END = ".!?:\n"
_SIGN = r"[%\u2030\u00b0$\u20ac\u00a3\u00a5<>\u2264\u2265=]|(?<!\w)[-+\u2212](?=\d)"
_TOKEN = re.compile(rf"\w+|[{_END}]|{_SIGN}")
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half|double|twice"
_TELLING = {
    *(word for word, others in OPPOSITES.items() if set(others) - {f"{word} not"}),
    *(word for words in (ONES, TEENS, _TENS) for word in words.split("|")),
    *(word.casefold() for word in (*UNITS, *MONEY, *MONTHS, *WEEKDAYS)),
    *("not", "no", "nor", "t", "least", "most"),  # "t" is left of "don't"
} - {"on", "like"}
"""Words that make another statement in the place of a word."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text in small letters, its runs of three, and how often it has the words that tell
    something: numbers, units, names, words with an opposite."""

    words: tuple[str, ...]
    runs: frozenset[tuple[str, ...]]
    telling: Counter[str]

    def is_like(self, other: Wording) -> bool:
        """Say whether one can stand for the other: they may differ in a few words that tell nothing."""
        if self.words == other.words:
            return True
        fewer, more = sorted((len(self.runs), len(other.runs)))
        if fewer < ALIKE * more or not fewer or self.telling != other.telling:
            return False
        shared = len(self.runs & other.runs)
        return shared >= ALIKE * (fewer + more - shared)


def wording(text: str) -> Wording:
    """Of any text; where it has no words, its signs stand for them."""
    words, telling = [], []
    starts = True  # a sentence, so that a capital makes no name
    for token in _TOKEN.findall(_normal(text)):
        if token not in _END:
            word = token.casefold()
            words.append(word)
            is_name = token != token.lower() and not (starts and token[1:] == token[1:].lower())
            if is_name or word in _TELLING or not word.isalpha():
                telling.append(word)
        starts = token in _END
    if not words:
        words = text.split()
    return Wording(
        tuple(words), frozenset(zip(*(words[k:] for k in range(_RUN)), strict=False)), Counter(telling)
    )


def _normal(text: str) -> str:
    """With one form for each letter, as PDFs write "ﬁ" and composed accents in more than one."""
    return " ".join(normal(word, "NFKC") for word in re.findall(r"\S+|\n", text))
