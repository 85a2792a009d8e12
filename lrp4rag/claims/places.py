"""`Place`: a sentence of a passage or a response, and all that is found in it; each is looked for once."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lrp4rag.claims.clauses import clauses
from lrp4rag.claims.conditions import LIMITS, WIDENERS, Restriction, kinds, restrictions
from lrp4rag.claims.dates import MONTHS
from lrp4rag.claims.extents import Extent, extents
from lrp4rag.claims.find import find_values
from lrp4rag.claims.polarity import find_polarity
from lrp4rag.claims.poles import DENIAL, Pole, poles
from lrp4rag.claims.signed import Clause, Word, signed_clauses
from lrp4rag.claims.surroundings import NOTHING, Surroundings
from lrp4rag.claims.value import Kind, Value
from lrp4rag.claims.words import STOP_WORDS, content_words, stem, word_set
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import WORD, encodable, normal

_LABEL = re.compile(r"[A-Z]|[IVX]+")
_ORDINALS = word_set("first second third fourth fifth sixth seventh eighth ninth tenth")
_DISTINCTIVE = _ORDINALS | word_set("full part bill call system interest fire bottom top mill front side")
"""Stop words that tell one thing from another nevertheless."""
_POINTS_BACK = re.compile(
    r"\W*(?:it|they|he|she|this|these|those|each|both|its|their|his|her)\b", re.IGNORECASE
)
_HEADING = re.compile(r"#{1,6} |[^.!?;,]{1,60}:?\Z")
COMPARED: frozenset[Kind] = frozenset({"quantity", "date", "time", "period", "name"})
"""Kinds of values that fill a slot; the other kinds are compared elsewhere."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a sentence: its characters there, and its stem, "" for words without content."""

    start: int
    end: int
    word: str
    stem: str


class Part(NamedTuple):
    """Characters `start` to `end` of a sentence, a clause; its values that fill a slot, and the words with
    content outside of these. All offsets are the sentence's."""

    start: int
    end: int
    values: tuple[Value, ...]
    tokens: tuple[Token, ...]


@dataclass(frozen=True, eq=False)
class Place:
    """Characters `start` to `end` of `source`, which is passage `passage` (counted from 0) or a response;
    `around` are all passages.

    `heading` is the line above that names its topic, and `before` the last sentence before it that does not
    point back itself; either may be "". It may be a heading itself.
    """

    passage: int
    start: int
    end: int
    source: str = field(repr=False)
    around: Surroundings = field(default=NOTHING, repr=False)
    heading: str = ""
    before: str = ""
    is_heading: bool = False

    @cached_property
    def text(self) -> str:
        return self.source[self.start : self.end]

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
        """Its values; their characters are the source's. They are looked for when they are needed, since that
        takes longer than all else."""
        return tuple(value.shifted(self.start) for value in self.own_values)

    @cached_property
    def own_values(self) -> tuple[Value, ...]:
        """Its values; their characters are the sentence's."""
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
    def clauses(self) -> tuple[Clause, ...]:
        """Its clauses that have a word; their characters are the source's."""
        return tuple(signed_clauses(self.source, self.start, self.end))

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """Its words with content, and which of them are denied; their characters are the source's."""
        return tuple(word for clause in self.clauses for word in clause.content)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its clauses with their values, in their order."""
        values = [value for value in self.own_values if value.kind in COMPARED]
        tokens = [
            token
            for token in self.tokens
            if token.stem and not any(value.start <= token.start < value.end for value in values)
        ]
        spans = clauses(self.text, [value for value in values if value.kind not in ("name", "period")])
        starts = [clause.start for clause in spans]

        def number(start: int) -> int:
            """Return the clause of a character; heads and signs between clauses belong to the one before."""
            return max(bisect_right(starts, start) - 1, 0)

        parts = []
        for k, clause in enumerate(spans):
            inside = tuple(value for value in values if number(value.start) == k)
            words = tuple(token for token in tokens if number(token.start) == k)
            items: list[Value | Token] = [*inside, *words]
            first = min([clause.start, *(item.start for item in items)])
            last = max([clause.end, *(item.end for item in items)])
            parts.append(Part(first, last, inside, words))
        return tuple(parts)

    def beside(self, clause: Clause) -> list[Word]:
        """Return the words with content outside of one of its clauses."""
        return [word for word in self.content if not clause.start <= word.start < clause.end]

    @cached_property
    def denials(self) -> int:
        """The number of its words that deny something."""
        return len(DENIAL.findall(self.source, self.start, self.end))

    @cached_property
    def poles(self) -> tuple[Pole, ...]:
        """Its phrases for one of two poles; their characters are the source's."""
        return poles(self.source, self.start, self.end)

    @cached_property
    def restrictions(self) -> tuple[Restriction, ...]:
        """Its conditions; their characters are the source's."""
        return restrictions(self.source, self.start, self.end)

    @cached_property
    def wideners(self) -> frozenset[str]:
        """The kinds of its words that widen a statement: "all", "even if"."""
        return kinds(WIDENERS, self.source, self.start, self.end)

    @cached_property
    def limits(self) -> frozenset[str]:
        """The kinds of its words that limit a statement: "only", "unless"."""
        return kinds(LIMITS, self.source, self.start, self.end)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens_of(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems_of(self.text)

    @cached_property
    def lead_stems(self) -> frozenset[str]:
        """The stems of what it continues: the heading, and the sentence that it points back to."""
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
        is_heading = _is_heading(text, start, end)
        place = Place(number, start, end, text, around, "" if is_heading else heading, before, is_heading)
        yield place
        if is_heading:
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
            has_content = word in _DISTINCTIVE or (word not in STOP_WORDS and len(word) > 1)
            yield Token(*match.span(), word, _stem(word) if has_content else "")


def _stem(word: str) -> str:
    """Return the stem of a word without the "i" of "carried", and with a doubled consonant once only."""
    if word in _ORDINALS or word in MONTHS:
        return word
    result = stem(word)
    if word.endswith(("ied", "ies")) and len(result) > 3:
        result = result.removesuffix("i")
    return result[:-1] if len(result) > 4 and result[-1] == result[-2] and result[-1] in "lnptgm" else result
