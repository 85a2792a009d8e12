"""Words of one sense and of opposite senses, by the table `lexicon.txt` made from WordNet 3.0.

A line of the table has a part of speech (n, v, a, r), words of one sense and, behind "!", words of the
opposite sense; or "=", an irregular form and its base. `python -m benchmarks.lexicon` writes it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable
from importlib import resources
from typing import Literal

from lrp4rag.claims.words import stem

Relation = Literal["same", "synonym", "opposite", ""]

_ENDINGS = (
    ("ies", "y"), ("ied", "y"), ("ier", "y"), ("iest", "y"), ("ily", "y"), ("sses", "ss"), ("es", ""),
    ("es", "e"), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("er", ""), ("er", "e"),
    ("est", ""), ("est", "e"), ("ly", ""),
)  # fmt: skip
_DENYING = ("un", "in", "im", "non-", "non", "dis", "ir", "il")
"""Prefixes that make a word's opposite."""


@functools.cache
def _table() -> tuple[dict[str, dict[str, Relation]], dict[str, str]]:
    """Return the related words of each word, and the base of each irregular form."""
    related, bases = defaultdict[str, dict[str, Relation]](dict), dict[str, str]()
    text = (resources.files("lrp4rag.claims") / "lexicon.txt").read_text("utf-8")
    for line in text.splitlines():
        kind, *fields = line.split(" ")
        if kind == "=":
            bases[fields[0]] = fields[1]
            continue
        middle = fields.index("!") if "!" in fields else len(fields)
        words, opposites = fields[:middle], fields[middle + 1 :]
        for word in words:
            for synonym in words:
                related[word].setdefault(synonym, "synonym")
            for opposite in opposites:
                related[word][opposite] = related[opposite][word] = "opposite"
    return dict(related), bases


@functools.lru_cache(maxsize=20_000)
def base(word: str) -> str:
    """Return the base form of a word in small letters, as far as the table has it; else the word."""
    related, bases = _table()
    if word in bases:
        return bases[word]
    if word in related and not word.endswith(("s", "ed", "ing")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            candidate = word[: len(word) - len(ending)] + instead
            if candidate in related:
                return candidate
            if len(candidate) > 3 and candidate[-1] == candidate[-2] and candidate[:-1] in related:
                return candidate[:-1]
    return word


def is_listed(word: str) -> bool:
    """Say whether the table has a base form, or a verb of two words: "give_back"."""
    return word in _table()[0]


@functools.lru_cache(maxsize=20_000)
def related_words(word: str) -> dict[str, Relation]:
    """Return the synonyms and opposites of a base form; not the words of its stem."""
    opposites: dict[str, Relation] = {}
    for beginning in _DENYING:
        opposites[beginning + word] = "opposite"
        if word.startswith(beginning) and len(word) > len(beginning) + 2:
            opposites[word.removeprefix(beginning)] = "opposite"
    if word.endswith("ful"):
        opposites[f"{word.removesuffix('ful')}less"] = "opposite"
    elif word.endswith("less"):
        opposites[f"{word.removesuffix('less')}ful"] = "opposite"
    return opposites | _table()[0].get(word, {})


class Senses:
    """The senses of some base forms."""

    def __init__(self, bases: Iterable[str]) -> None:
        self._bases = frozenset(bases)
        self._stems = frozenset(map(stem, self._bases))

    def __contains__(self, base: str) -> bool:
        """Say whether a base form is related to one of these: of its stem, of its sense, or opposite."""
        return stem(base) in self._stems or not related_words(base).keys().isdisjoint(self._bases)


def relation(first: str, second: str) -> Relation:
    """Say how two base forms are related: of one stem, of one sense, opposite, or not."""
    if first == second:
        return "same"
    kind = related_words(first).get(second, "")
    if kind != "opposite" and stem(first) == stem(second):
        return "same"
    return kind
