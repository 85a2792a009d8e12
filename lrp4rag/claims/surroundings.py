"""`Surroundings`: the text around a text, which shows how its words are meant."""

from __future__ import annotations

import re
from functools import cached_property

from lrp4rag.claims.units import PRICE_IN_POUNDS


class Surroundings:
    """A text, such as the passages, and `further` texts around it; words are looked for once, when asked for.

    Words in small letters are common, and words with a capital inside a sentence are names.
    """

    def __init__(self, text: str, further: Surroundings | None = None) -> None:
        self.texts: tuple[str, ...] = (text, *(further.texts if further else ()))
        self._further = further

    @cached_property
    def small(self) -> frozenset[str]:
        """The words in small letters."""
        words = frozenset(re.findall(r"\b[a-z]+\b", self.texts[0]))
        return words | self._further.small if self._further else words

    @cached_property
    def inside(self) -> frozenset[str]:
        """The words with a capital that open no sentence."""
        words = frozenset(re.findall(r"(?<=[a-z,;] )([A-Z][\w-]*)", self.texts[0]))
        return words | self._further.inside if self._further else words

    @cached_property
    def prices_in_pounds(self) -> bool:
        """Whether something costs "5 pounds" there."""
        priced = bool(PRICE_IN_POUNDS.search(self.texts[0]))
        return priced or bool(self._further and self._further.prices_in_pounds)


NOTHING = Surroundings("")
"""A text by itself."""

_LOOKED_BACK = 10_000
"""Characters before a sentence that are looked at: all of them, for each sentence, would take time with the
square of their number."""


def written_before(text: str, start: int, further: Surroundings) -> Surroundings:
    """Return what stands before character `start` of a text, from where a word ends, with `further` texts
    around it."""
    first = max(0, start - _LOOKED_BACK)
    return Surroundings(text[max(first, text.find(" ", first, start)) if first else 0 : start], further)
