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
"""Part of the content words of a quotation that a passage must have."""
_SMALL = word_set("the a an our of on for and in to")

T = TypeVar("T")


def _once(look: Callable[[Library, str], T]) -> Callable[[Library, str], T]:
    """Have a library look once only for each text."""

    @wraps(look)
    def found(self: Library, text: str) -> T:
        self.tick()
        key = look.__name__, text
        if key not in self._found:
            self._found[key] = look(self, text)
        value: T = self._found[key]
        return value

    return found


class Library:
    """What passages are called: by number, id, title, and the parts of documents that they have; the question
    may name what an answer then names too."""

    def __init__(self, inputs: CheckInput) -> None:
        self._asked = visible(inputs.question)
        self.tick = inputs.tick
        self._found: dict[tuple[str, str], Any] = {}
        self._sources = sources = inputs.sources
        self.texts = [visible(source.read) for source in sources]
        self.known = [_known_of(source) for source in sources]
        self._ids = {source.id.casefold(): number for number, source in enumerate(sources) if source.id}
        self._titles = [_words(source.title or "") for source in sources]
        self._parts = [parts_of(text) for text in self.texts]
        self._all = [_plain(text) for text in self.texts]
        self._capitals = ["".join(re.findall(r"\b[A-Z](?=[a-z])", text)) for text in self.texts]

    @property
    def titles(self) -> Iterator[str]:
        """Titles without their versions."""
        return (_without_version(source.title) for source in self._sources if source.title)

    @property
    def ids(self) -> Iterator[str]:
        return (source.id for source in self._sources if source.id)

    def whole(self, numbers: Sequence[int]) -> tuple[Part, ...]:
        return tuple(Part(number, 0, len(self.texts[number])) for number in numbers)

    def numbered(self, number: int) -> int | None:
        """Return the passage that counts as `number` from 1, or has it for an id; None for none."""
        return number - 1 if 1 <= number <= len(self.texts) else self.with_id(str(number))

    def with_id(self, written: str) -> int | None:
        return self._ids.get(written.casefold())

    @_once
    def says(self, phrase: str) -> bool:
        """Say whether a passage has these words, whatever their case."""
        plain = _plain(phrase)
        return bool(plain) and any(plain in text for text in self._all)

    def finds(self, pattern: re.Pattern[str]) -> bool:
        """Say whether a pattern is in a passage or in the question."""
        return any(pattern.search(text) for text in (*self.texts, self._asked))

    def mentions(self, phrase: str) -> bool:
        """Say whether a passage, what is known of it, or the question has these words, whatever their
        case."""
        plain = _plain(phrase)
        known = (_plain(text) for text in (*self.known, self._asked))
        return self.says(phrase) or any(plain in text for text in known) or self.with_id(phrase) is not None

    def has_word(self, stem: str) -> bool:
        """Say whether a passage, what is known of it, or the question has a word with this stem."""
        return stem in self._stems

    def has_name(self, written: str) -> bool:
        """Say whether a passage or the question has these characters as a word: "WHO" is no "who"."""
        return self.finds(re.compile(rf"(?<!\w){re.escape(written)}(?!\w)"))

    @cached_property
    def _stems(self) -> frozenset[str]:
        return content_words("\n".join([*self.texts, *self.known, self._asked, *self.ids]))

    def quotes(self, words: str) -> bool:
        """Say whether a passage or the question has most of the words of a quotation."""
        wanted = content_words(words)
        texts = (*self.texts, self._asked)
        return not wanted or any(len(wanted & content_words(text)) >= MOST * len(wanted) for text in texts)

    @cached_property
    def dates(self) -> list[Value]:
        """Those of the passages, of what is known of them, and of the question."""
        texts = (*self.texts, *self.known, self._asked)
        return [one for text in texts for one in find_values(text) if one.kind == "date"]

    @_once
    def says_exactly(self, written: str) -> bool:
        """Say whether a passage has these characters."""
        return any(written in text for text in self.texts)

    def named(self, name: str) -> tuple[int, ...]:
        """Return the passages of a document, or else those that speak of it."""
        return self.titled(name) or self.mentioned(name)

    @_once
    def titled(self, name: str) -> tuple[int, ...]:
        """Return the passages of a document: those whose title has all the words of its name, or else is part
        of it where some passage says the rest. A version counts where both have one."""
        wanted, version = _words(name), _version(name)
        found = [k for k, title in enumerate(self._titles) if wanted and wanted <= title]
        if not found:
            found = [
                k
                for k, title in enumerate(self._titles)
                if len(title) > 1 and title <= wanted and all(map(self.says, wanted - title))
            ]
        return tuple(k for k in found if not version or self._version(k) in ("", version))

    @_once
    def mentioned(self, name: str) -> tuple[int, ...]:
        """Return the passages that have a name, or the words that its capitals stand for."""
        phrase = re.compile(rf"(?<!\w){re.escape(_plain(name))}(?!\w)")
        is_acronym = name.isupper() and len(name) > 2
        return tuple(
            k
            for k, text in enumerate(self._all)
            if phrase.search(text) or (is_acronym and name in self._capitals[k])
        )

    def parts(self, label: Label, among: Sequence[int] | None) -> tuple[tuple[Part, ...], bool]:
        """What stands under a label in some passages (all for None), and whether any of it is in none."""
        self.tick()
        passages = range(len(self.texts)) if among is None else among
        if label.standard is not None:
            passages = [k for k in passages if any(same_standard(label, one) for one, _, _ in self._parts[k])]
            if not passages or not label.numbers:
                return self.whole(passages), not passages
        found, is_lost = list[Part](), False
        for number in label.numbers:
            some = [
                Part(k, start, end)
                for k in passages
                for one, start, end in self._parts[k]
                if self._matches(label, one) and any(_is_part(number, other) for other in one.numbers)
            ]
            found += some
            is_lost = is_lost or not some
        return tuple(found[:_MOST_PARTS]), is_lost

    @staticmethod
    def _matches(label: Label, one: Label) -> bool:
        if label.standard is not None and one.standard is not None:
            return same_standard(label, one)
        return one.family == label.family

    def _version(self, number: int) -> str:
        source = self._sources[number]
        return _version(source.title or "") or (source.version or "").lower().lstrip("v. ")


def _is_part(number: str, other: str) -> bool:
    """Say whether a cited number is one that a passage has: 4 where it has 4.2, 17(1) where it has 17."""
    return within(other, number) or ("(" in number and within(number, other))


def _known_of(source: Source) -> str:
    """Version and dates of a passage, on a line each. A version that is a small number is left out: it would
    stand for any such number of a claim; one may be a date in short ("2024-02")."""
    version = source.version or ""
    written = f"{version}-01" if re.fullmatch(r"(?:19|20)\d\d-\d\d", version) else version
    small = re.fullmatch(r"\D*\d{1,3}\D*", version)
    found = ("" if small else written, source.effective, source.expires)
    return "\n".join(visible(text) for text in found if text)


def _plain(text: str) -> str:
    return " ".join(map(normal, text.casefold().split()))


def _words(name: str) -> frozenset[str]:
    return frozenset(words_of(_without_version(name))) - _SMALL


def _version(name: str) -> str:
    match = _VERSION.search(name) or _BARE.search(name)
    return match["version"] if match else ""


def _without_version(name: str) -> str:
    return _BARE.sub("", _VERSION.sub("", name))
