"""`Place`: a sentence of a passage, its words and values, and what they refer to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lrp4rag.claims.dates import MONTHS
from lrp4rag.claims.extents import Extent, extents
from lrp4rag.claims.find import find_values
from lrp4rag.claims.polarity import find_polarity
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import content_words, stem, stop_words, word_set
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import WORD, encodable, normal

_LABEL = re.compile(r"[A-Z]|[IVX]+")
_ORDINALS = word_set("first second third fourth fifth sixth seventh eighth ninth tenth")
_KEPT = _ORDINALS | word_set("full part bill call system interest fire bottom top mill front side")
"""Stop words that tell one thing from another all the same."""
_POINTS_BACK = re.compile(
    r"\W*(?:it|they|he|she|this|these|those|each|both|its|their|his|her)\b", re.IGNORECASE
)
_HEADING = re.compile(r"#{1,6} |[^.!?;,]{1,60}:?\Z")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a sentence: its characters there, and its stem, "" for words without content."""

    start: int
    end: int
    word: str
    stem: str


@dataclass(frozen=True, eq=False)
class Place:
    """Characters `start` to `end` of passage `passage` (counted from 0), that `text`; `around` are all
    passages.

    `heading` is the line above that names its topic, and `before` the sentence before it, the last that does
    not point back itself; either may be "". It may be a heading itself.
    """

    passage: int
    start: int
    end: int
    text: str
    around: Surroundings = field(repr=False)
    heading: str = ""
    before: str = ""
    is_heading: bool = False

    @property
    def points_back(self) -> bool:
        """Whether it begins with an "It" that stands for something of the sentence before."""
        return bool(self.before and _POINTS_BACK.match(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its content words."""
        return content_words(self.text)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Its values, whose characters are the passage's; they are looked for when asked for, since that
        takes longer than all else."""
        return tuple(value.shifted(self.start) for value in self.own_values)

    @cached_property
    def own_values(self) -> tuple[Value, ...]:
        """The same; their characters are the sentence's."""
        return tuple(find_values(self.text, self.around))

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        """Its values with their ranges and bounds; their characters are the sentence's."""
        return tuple(extents(self.text, self.own_values))

    @cached_property
    def polarity(self) -> tuple[Value, ...]:
        """Its words with an opposite; their characters are the sentence's."""
        return tuple(find_polarity(self.text))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens_of(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems_of(self.text)

    @cached_property
    def lead_stems(self) -> frozenset[str]:
        """Of what it continues: the heading, and the sentence that it points back to."""
        return stems_of(f"{self.heading} {self.before}" if self.points_back else self.heading)

    @cached_property
    def before_stems(self) -> frozenset[str]:
        return stems_of(self.before)


def places_of(passages: Sequence[str], tick: Callable[[], None] = lambda: None) -> list[Place]:
    """Return the sentences of passages in their order. `tick` is called for each, and may raise."""
    passages = [encodable(passage) for passage in passages]
    around = Surroundings(" ".join(passages))
    return [
        place for number, text in enumerate(passages) for place in _of_passage(number, text, around, tick)
    ]


def _of_passage(number: int, text: str, around: Surroundings, tick: Callable[[], None]) -> Iterator[Place]:
    heading = before = ""
    for start, end in sentences_in(text):
        tick()
        alone = _is_heading(text, start, end)
        place = Place(number, start, end, text[start:end], around, "" if alone else heading, before, alone)
        yield place
        if alone:
            heading, before = place.text, ""
        elif not place.points_back:
            before = place.text


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words with content of a text."""
    return frozenset(token.stem for token in tokens_of(text) if token.stem)


def _is_heading(text: str, start: int, end: int) -> bool:
    """Say whether a line stands alone, is short and has no full stop."""
    alone = (start == 0 or text[start - 1] in "\n\r") and text[end : end + 1] in ("\n", "\r")
    return alone and bool(_HEADING.match(text, start, end))


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the words of a text with their stems."""
    for match in WORD.finditer(text):
        written, word = match[0], normal(match[0].lower())
        if match.start() and _LABEL.fullmatch(written):
            yield Token(*match.span(), word, f"#{written}")
        else:
            kept = word in _KEPT or (word not in stop_words() and len(word) > 1)
            yield Token(*match.span(), word, _stem(word) if kept else "")


def _stem(word: str) -> str:
    """That of the package, without the "i" of "carried", and a consonant that is doubled once only."""
    if word in _ORDINALS or word in MONTHS:
        return word
    found = stem(word)
    if word.endswith(("ied", "ies")) and len(found) > 3:
        found = found.removesuffix("i")
    return found[:-1] if len(found) > 4 and found[-1] == found[-2] and found[-1] in "lnptgm" else found
