"""`Library`: the retrieved passages, as citations name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar

from lrp4rag.claims import Value, find_values
from lrp4rag.claims.words import content_words, word_set
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.citations.citation import Part
from lrp4rag.guard.checks.citations.labels import Label, parts_of, same_standard, within
from lrp4rag.source import Source
from lrp4rag.util.text import normal, visible, words_of

VERSION = r"(?:[vV]\.? ?|[vV]ersion |[rR]ev(?:ision|\.)? )(?P<version>\d{1,4}(?:\.\d{1,4}){0,3})"
_VERSION = re.compile(rf",? ?\(?\b{VERSION}\)?")
_BARE = re.compile(r",? \(?(?P<version>\d{1,3}(?:\.\d{1,3}){1,3})\)?\Z")
"""A version without a word for it, at the end of a name: "Leave Policy 3.1"."""
_MOST_PARTS = 200
MOST = 0.6
"""The least share of the content words of a quotation that a passage must have."""
_SMALL = word_set("the a an our of on for and in to")

T = TypeVar("T")


def _once(look: Callable[[Library, str], T]) -> Callable[[Library, str], T]:
    """Make a library look each text up only once."""

    @wraps(look)
    def remembered(self: Library, text: str) -> T:
        self.tick()
        key = look.__name__, text
        if key not in self._results:
            self._results[key] = look(self, text)
        result: T = self._results[key]
        return result

    return remembered


class Library:
    """The passages by number, id, title, and the parts of documents in them; and the question, whose names an
    answer may use too."""

    def __init__(self, inputs: CheckInput) -> None:
        self._question = visible(inputs.question)
        self.tick = inputs.tick
        self._results: dict[tuple[str, str], Any] = {}
        self._sources = sources = inputs.sources
        self.texts = [visible(source.read) for source in sources]
        self.metadata = [_metadata_of(source) for source in sources]
        """Version and dates of each passage."""
        self._ids = {source.id.casefold(): number for number, source in enumerate(sources) if source.id}
        self._titles = [_words(source.title or "") for source in sources]
        self._parts = [parts_of(text, self.tick) for text in self.texts]
        self._plain_texts = [_plain(text) for text in self.texts]
        self._capitals = ["".join(re.findall(r"\b[A-Z](?=[a-z])", text)) for text in self.texts]

    @property
    def titles(self) -> Iterator[str]:
        """Return the titles without their versions."""
        return (_without_version(source.title) for source in self._sources if source.title)

    @property
    def ids(self) -> Iterator[str]:
        return (source.id for source in self._sources if source.id)

    def whole(self, numbers: Sequence[int]) -> tuple[Part, ...]:
        """Return whole passages."""
        return tuple(Part(number, 0, len(self.texts[number])) for number in numbers)

    def numbered(self, number: int) -> int | None:
        """Return the passage that is number `number` from 1, or has it for an id; None for none."""
        return number - 1 if 1 <= number <= len(self.texts) else self.with_id(str(number))

    def with_id(self, written: str) -> int | None:
        return self._ids.get(written.casefold())

    @_once
    def says(self, phrase: str) -> bool:
        """Say whether a passage has these words, whatever their case."""
        plain = _plain(phrase)
        return bool(plain) and any(plain in text for text in self._plain_texts)

    def finds(self, pattern: re.Pattern[str]) -> bool:
        """Say whether a pattern is in a passage or in the question."""
        return any(pattern.search(text) for text in (*self.texts, self._question))

    def mentions(self, phrase: str) -> bool:
        """Say whether a passage, its metadata or the question has these words, whatever their case."""
        plain = _plain(phrase)
        texts = (_plain(text) for text in (*self.metadata, self._question))
        return self.says(phrase) or any(plain in text for text in texts) or self.with_id(phrase) is not None

    def has_word(self, stem: str) -> bool:
        """Say whether a passage, its metadata or the question has a word with this stem."""
        return stem in self._stems

    def has_name(self, written: str) -> bool:
        """Say whether a passage or the question has these characters as a word: "WHO" is no "who"."""
        return self.finds(re.compile(rf"(?<!\w){re.escape(written)}(?!\w)"))

    @cached_property
    def _stems(self) -> frozenset[str]:
        return content_words("\n".join([*self.texts, *self.metadata, self._question, *self.ids]))

    def quotes(self, words: str) -> bool:
        """Say whether a passage or the question has most of the words of a quotation."""
        stems = content_words(words)
        texts = (*self.texts, self._question)
        return not stems or any(len(stems & content_words(text)) >= MOST * len(stems) for text in texts)

    @cached_property
    def dates(self) -> list[Value]:
        """Return the dates of the passages, of their metadata and of the question."""
        texts = (*self.texts, *self.metadata, self._question)
        return [value for text in texts for value in find_values(text) if value.kind == "date"]

    @_once
    def says_exactly(self, written: str) -> bool:
        """Say whether a passage has these characters."""
        return any(written in text for text in self.texts)

    def named(self, name: str) -> tuple[int, ...]:
        """Return the passages of a document, or else those that speak of it."""
        return self.titled(name) or self.mentioned(name)

    @_once
    def titled(self, name: str) -> tuple[int, ...]:
        """Return the passages of a document: those whose title has all words of its name; or else those whose
        title has only words of it, where some passage has the rest. A version counts where both have one."""
        words, version = _words(name), _version(name)
        numbers = [k for k, title in enumerate(self._titles) if words and words <= title]
        if not numbers:
            numbers = [
                k
                for k, title in enumerate(self._titles)
                if len(title) > 1 and title <= words and all(map(self.says, words - title))
            ]
        return tuple(k for k in numbers if not version or self._version(k) in ("", version))

    @_once
    def mentioned(self, name: str) -> tuple[int, ...]:
        """Return the passages that have a name, or the words that its capitals stand for."""
        phrase = re.compile(rf"(?<!\w){re.escape(_plain(name))}(?!\w)")
        is_acronym = name.isupper() and len(name) > 2
        return tuple(
            k
            for k, text in enumerate(self._plain_texts)
            if phrase.search(text) or (is_acronym and name in self._capitals[k])
        )

    def parts(self, label: Label, among: Sequence[int] | None) -> tuple[tuple[Part, ...], bool]:
        """Return the parts under a label in some passages (all for None), and whether a number of the label
        has none."""
        self.tick()
        passages = range(len(self.texts)) if among is None else among
        if label.standard is not None:
            passages = [
                k for k in passages if any(same_standard(label, entry) for entry, _, _ in self._parts[k])
            ]
            if not passages or not label.numbers:
                return self.whole(passages), not passages
        parts, is_lost = list[Part](), False
        for number in label.numbers:
            matches = [
                Part(k, start, end)
                for k in passages
                for entry, start, end in self._parts[k]
                if self._matches(label, entry) and any(_is_part(number, inner) for inner in entry.numbers)
            ]
            parts += matches
            is_lost = is_lost or not matches
        return tuple(parts[:_MOST_PARTS]), is_lost

    @staticmethod
    def _matches(label: Label, entry: Label) -> bool:
        if label.standard is not None and entry.standard is not None:
            return same_standard(label, entry)
        return entry.family == label.family

    def _version(self, number: int) -> str:
        source = self._sources[number]
        return _version(source.title or "") or (source.version or "").lower().lstrip("v. ")


def _is_part(number: str, entry: str) -> bool:
    """Say whether a passage has a cited number: 4 where it has 4.2, 17(1) where it has 17."""
    return within(entry, number) or ("(" in number and within(number, entry))


def _metadata_of(source: Source) -> str:
    """Return version and dates of a passage, on a line each. A version that is a small number is left out,
    since it would stand for any such number of a claim; a version may be a short date ("2024-02")."""
    version = source.version or ""
    written = f"{version}-01" if re.fullmatch(r"(?:19|20)\d\d-\d\d", version) else version
    small = re.fullmatch(r"\D*\d{1,3}\D*", version)
    fields = ("" if small else written, source.effective, source.expires)
    return "\n".join(visible(text) for text in fields if text)


def _plain(text: str) -> str:
    return " ".join(map(normal, text.casefold().split()))


def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(_without_version(name))) - _SMALL


def _version(name: str) -> str:
    match = _VERSION.search(name) or _BARE.search(name)
    return match["version"] if match else ""


def _without_version(name: str) -> str:
    return _BARE.sub("", _VERSION.sub("", name))
