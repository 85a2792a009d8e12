"""`Edit`: one change of a faithful response; `Draft`: the response that edits are looked for in."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index, Occurrence, support
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import content_words
from lrp4rag.example import Example
from lrp4rag.util.sentences import sentences_in

SUPPORTED = 0.3
"""Similarity from which a passage's sentence is taken for the one that a value comes from."""

GROUNDED = 0.4
"""Share of a sentence's words (by rarity) that one place of the passages needs to have to say the same."""

_ARTICLE = re.compile(r"\b(an?)[ \u00a0]\Z", re.IGNORECASE)
_VOWEL = re.compile(r"(?!uni|use|usu|eur|one\b|once)(?:[aeiou]|8|11\b|18\b|hour|honest)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` (exclusive) of a response, and what stands there instead.

    `passage`, where there is one, comes to the passages with the edit.
    """

    kind: str
    start: int
    end: int
    text: str
    passage: str = ""

    def apart_from(self, edits: Sequence[Edit]) -> bool:
        """Say whether at least one character stays between it and each of some edits."""
        return all(self.end < edit.start or edit.end < self.start for edit in edits)


class Draft:
    """A response with its passages, and where its values stand in them. `others`, examples of other sources,
    lend statements and names; a name is none of the `common` words."""

    def __init__(
        self, example: Example, others: Sequence[Example] = (), common: Collection[str] = frozenset()
    ) -> None:
        self.example, self.others, self.common = example, others, common
        self.response = example.response or ""
        self.index = index_of(tuple(example.passages))
        self.context = " ".join(example.passages)
        self.surroundings = Surroundings(self.context)
        self.sentences = sentences_in(self.response)
        self.values = find_values(self.response, self.surroundings)
        self.question_values = find_values(example.question)

    def shuffled(self, random: Random, *kinds: str) -> list[Value]:
        """Return its values of these kinds, in any order."""
        values = [value for value in self.values if value.kind in kinds]
        return random.sample(values, len(values))

    def sentence(self, place: int) -> tuple[int, int]:
        """Return the sentence at a character; an empty one between sentences."""
        return next(((start, end) for start, end in self.sentences if start <= place < end), (place, place))

    def grounded(self, place: int) -> bool:
        """Say whether the passages have most of what the sentence at a character says."""
        return self._grounding.get(self.sentence(place), 0.0) >= GROUNDED

    @functools.cached_property
    def _grounding(self) -> dict[tuple[int, int], float]:
        texts = {span: content_words(self.response[span[0] : span[1]]) for span in self.sentences}
        return {span: max(self.index.similarities(words), default=0.0) for span, words in texts.items()}

    def occurrences(self, value: Value) -> list[Occurrence]:
        """Return comparable values of the passages, most similar to its sentence first."""
        start, end = self.sentence(value.start)
        around = self.response[start : value.start] + " " + self.response[value.end : end]
        words = content_words(around) or content_words(self.example.question)
        return self.index.occurrences(value, self.index.similarities(words))

    def supported(self, value: Value) -> float:
        """Say how well the passages support it (0 to 1); 0 where they do not."""
        return support(value, self.occurrences(value))

    def edit(self, kind: str, start: int, end: int, text: str, passage: str = "") -> Edit | None:
        """Make an edit of this response; None where it would change nothing, "a" or "an" would no longer fit,
        it would leave a sentence without its beginning, or the sentence asks."""
        first, last = self.sentence(start)
        before, after = self.response[:start], self.response[end:]
        if text == self.response[start:end] or self.response[first:last].endswith("?"):
            return None
        if not text:
            if start in (0, first):
                return None
            end += after[:1] == " " and before[-1:] in (" ", "\n")
        article = _ARTICLE.search(before)
        following = text.lstrip() or after.lstrip()
        if article and bool(_VOWEL.match(following)) != (article[1].lower() == "an"):
            return None
        return Edit(kind, start, end, text, passage)


Maker = Callable[[Draft, Random], Iterator[Edit]]
"""Finds the edits of one kind that a draft admits, in any order; one for each place."""


@functools.lru_cache(maxsize=1024)
def index_of(passages: tuple[str, ...]) -> Index:
    return Index(passages)


def apply(response: str, edits: Sequence[Edit]) -> tuple[str, list[tuple[int, int]]]:
    """Apply edits, none of which may overlap another; return the response, and where each new text stands in
    it, in the order of the response and without the white space around it.

    Where a text was taken out, the word before marks the place, or the one after where none is before.
    """
    text, cursor, spans = "", 0, list[tuple[int, int]]()
    for edit in sorted(edits, key=lambda edit: edit.start):
        text += response[cursor : edit.start]
        start = len(text) + len(edit.text) - len(edit.text.lstrip())
        text += edit.text
        cursor = edit.end
        spans.append((start, max(start, len(text.rstrip()))))
    text += response[cursor:]
    return text, [(start, end) if start < end else _word_at(text, start) for start, end in spans]


def _word_at(text: str, place: int) -> tuple[int, int]:
    """Find the word that ends at or before a character, else the next one."""
    word = re.search(r"\S+(?=\s*\Z)", text[:place]) or re.compile(r"\S+").search(text, place)
    return word.span() if word else (0, len(text))
