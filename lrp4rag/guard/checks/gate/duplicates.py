"""Passages that say the same: equal but for case, white space and punctuation, or nearly so."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from lrp4rag.claims.dates import MONTHS, WEEKDAYS
from lrp4rag.claims.polarity import OPPOSITES
from lrp4rag.claims.quantities import ONES, TEENS
from lrp4rag.claims.units import MONEY, UNITS

ALIKE = 0.9
"""The least share of common runs of words that makes two passages near duplicates."""
_RUN = 3
_LONGEST_WORD = 100  # Unicode's normal form takes a time that is quadratic in a run of accents
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
"""Words whose exchange changes a statement."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text in small letters, its runs of three, and the counts of its telling words: numbers,
    units, names, words with an opposite."""

    words: tuple[str, ...]
    runs: frozenset[tuple[str, ...]]
    telling: Counter[str]

    def is_like(self, other: Wording) -> bool:
        """Say whether each can stand for the other: they may differ in a few words that tell nothing."""
        if self.words == other.words:
            return True
        fewer, more = sorted((len(self.runs), len(other.runs)))
        if fewer < ALIKE * more or not fewer or self.telling != other.telling:
            return False
        shared = len(self.runs & other.runs)
        return shared >= ALIKE * (fewer + more - shared)


class Wordings:
    """Wordings in the order in which they were added, to find the first that is like another."""

    def __init__(self) -> None:
        self._wordings: list[Wording] = []
        self._by_words: dict[tuple[str, ...], int] = {}
        self._by_run: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)

    def add(self, wording: Wording) -> None:
        """Append a wording."""
        number = len(self._wordings)
        self._wordings.append(wording)
        self._by_words.setdefault(wording.words, number)
        for run in wording.runs:
            self._by_run[run].append(number)

    def like(self, wording: Wording, tick: Callable[[], None]) -> int | None:
        """Return the number of the first wording that is like it; None for none. Calls `tick` for each
        wording that it compares."""
        if (number := self._by_words.get(wording.words)) is not None:
            return number
        # A text with `ALIKE` of its runs has one of any that are more than the rest.
        few = islice(wording.runs, int((1 - ALIKE) * len(wording.runs)) + 2)
        for number in sorted({number for run in few for number in self._by_run.get(run, ())}):
            tick()
            if wording.is_like(self._wordings[number]):
                return number
        return None


def wording(text: str) -> Wording:
    """Return the wording of a text; where it has no words, its signs stand for them."""
    words, telling = [], []
    starts = True  # the start of a sentence, where a capital makes no name
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
    """Give each letter one form, as PDFs write "ﬁ" and composed accents in several."""
    words = re.findall(r"\S+|\n", text)
    return " ".join(
        unicodedata.normalize("NFKC", word) if len(word) <= _LONGEST_WORD else word for word in words
    )
