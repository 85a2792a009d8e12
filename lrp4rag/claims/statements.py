"""`Statement`: a sentence of a passage, its words, and what they refer to."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims.dates import MONTHS
from lrp4rag.claims.find import find_values
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value, without_overlaps
from lrp4rag.claims.words import stem, stop_words, word_set
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import WORD, encodable, normal

LONGEST = 1000
"""Characters of a sentence that is read: longer ones are tables or no language."""
CONTEXT = 20_000
"""Characters of a passage that tell which of its words are common (see `find_values`)."""

_LABEL = re.compile(r"[A-Z]|[IVX]+")
_ONCE = re.compile(r"\bonce(?= only\b|[.;,)]|\Z)", re.IGNORECASE)
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
class Statement:
    """Characters `start` to `end` of passage `passage`, that `text`. `lead` is what it continues: the heading
    above, and the sentence before one that begins with "It"; `before` is the sentence before it anyway."""

    passage: int
    start: int
    end: int
    text: str
    lead: str
    before: str
    points_back: bool
    context: Surroundings

    @functools.cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(_tokens(self.text))

    @functools.cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in self.tokens if token.stem)

    @functools.cached_property
    def lead_stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in _tokens(self.lead) if token.stem)

    @functools.cached_property
    def before_stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in _tokens(self.before) if token.stem)

    @functools.cached_property
    def values(self) -> tuple[Value, ...]:
        """Their characters are the sentence's."""
        once = (
            Value("quantity", *match.span(), match[0], 1.0, "", "time") for match in _ONCE.finditer(self.text)
        )
        found = (*find_values(self.text, self.context), *once)
        return tuple(sorted(without_overlaps(found), key=lambda one: one.start))


def statements(passages: Sequence[str], tick: Callable[[], None]) -> list[Statement]:
    """Return all sentences of all passages, up to their first `LONGEST` characters. Only the words are read
    yet."""
    return [one for number, text in enumerate(passages) for one in _of_passage(number, text, tick)]


def _of_passage(number: int, text: str, tick: Callable[[], None]) -> Iterator[Statement]:
    text = encodable(text)
    context = Surroundings(text[:CONTEXT])
    heading = before = ""
    tick()
    for start, end in sentences_in(text):
        tick()
        sentence = text[start : min(end, start + LONGEST)]
        if _is_heading(text, start, end):
            heading, before = sentence, ""
            continue
        points_back = bool(_POINTS_BACK.match(sentence)) and bool(before)
        lead = f"{heading} {before}" if points_back else heading
        yield Statement(number, start, start + len(sentence), sentence, lead, before, points_back, context)
        if not points_back:
            before = sentence


def _is_heading(text: str, start: int, end: int) -> bool:
    """Say whether a line stands alone, is short and has no full stop."""
    alone = (start == 0 or text[start - 1] in "\n\r") and text[end : end + 1] in ("\n", "\r")
    return alone and bool(_HEADING.match(text, start, end))


def _tokens(text: str) -> Iterator[Token]:
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
