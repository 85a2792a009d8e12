"""Citations by name: titles, ids, links and footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from lrp4rag.claims.words import word_set
from lrp4rag.guard.checks.citations.citation import Citation, Part
from lrp4rag.guard.checks.citations.context import (
    in_brackets,
    is_announced,
    is_cited,
    is_quoted,
    is_wrapped,
    marked,
    speaks_on,
)
from lrp4rag.guard.checks.citations.library import VERSION, Library
from lrp4rag.guard.checks.citations.marks import find_marks, find_passages
from lrp4rag.util.text import one_line

_NOUNS = word_set(
    """
    policy policies guideline guidelines guide handbook manual act regulation regulations directive standard
    standards procedure procedures report agreement contract charter code runbook playbook faq sheet memo
    memorandum statute law bill treaty convention terms notice circular bulletin whitepaper paper plan
    framework protocol specification rules addendum catalogue brochure guidance instruction instructions
    strategy review commentary study decision ordinance constitution leaflet factsheet datasheet
    documentation
    """
)
_NO_START = word_set(
    """
    according to under as per see in our the this that your its a an source sources while and but for of on
    by from with both if when since because cf also reference references based document passage
    """
)
_SMALL_NOUN = "|".join(sorted(_NOUNS, key=len, reverse=True))
_WORD = r"[A-Z][\w'\u2019&/-]{0,40}"
_NAME = re.compile(
    rf"(?<!\w){_WORD}(?: (?:(?:of|on|and|for|the|to|in) ){{0,2}}{_WORD}){{0,7}}(?: (?:{_SMALL_NOUN})\b)?"
)
_QUOTED = re.compile(
    r"[\"\u201c](?P<name>[^\"\u201c\u201d\n]{3,120})[\"\u201d]|(?<!\*)\*(?P<star>[^*\n]{3,120})\*(?!\*)"
)
_SUFFIX = re.compile(rf",? \(?{VERSION}\)?| \d{{1,3}}(?:\.\d{{1,3}}){{1,3}}(?![\w%]| ?[-\u2013])")
_PREFIX = re.compile(rf"\b{VERSION} of (?:the |our )?\Z")
_YEAR = re.compile(r",? \(?(?:19|20)\d\d\b\)?(?![/-]\d)")
_NUMBER = re.compile(r",? (?:No\.? ?)?\d{1,4}[/-]\d{1,4}(?:[/-]\d{1,4})?\b(?: \([A-Z]{1,6}\))?")
_LINK = re.compile(
    r"\[(?P<text>\[?[^\[\]\n]{1,300}\]?)\]\((?P<target>[^()\s]{1,1000})(?: \"[^\"\n]{0,200}\")?\)"
)
_FOOTNOTE = re.compile(r"\[\^(?P<label>[\w-]{1,30})\]")
_UNKNOWN_ID = re.compile(r"(?<=[\[(])[A-Za-z]{1,20}[-_#][A-Za-z0-9_.-]{0,30}\d(?=[\])]|, )")
_SHAPES = 50


def find_links(text: str, library: Library) -> Iterator[Citation]:
    """Yield Markdown links, except for addresses that the passages have, and addresses that are no source."""
    for match in _LINK.finditer(text):
        target, words = match["target"], match["text"].strip("[]*_\"' ")
        if re.match(r"(?:mailto|tel|javascript|data):", target, re.I):
            continue
        cited = _by_target(target, library) or named_by(words, library)
        if cited is None:
            if target.startswith("#") or library.says_exactly(target.rstrip("/")):
                continue
            cited = (), one_line(target, 60)
        yield Citation(*match.span(), "link", *cited, inline=_is_inline(text, match))


def find_footnotes(text: str, library: Library, definitions: dict[str, str]) -> Iterator[Citation]:
    """Yield footnote marks, which cite what their definition names, or else the passage of their number."""
    for match in _FOOTNOTE.finditer(text):
        label = match["label"]
        cited = named_by(definitions.get(label, ""), library)
        if cited is None and label.isdecimal():
            passage = library.numbered(int(label[:9]))
            cited = _resolved(passage, f"passage {label[:9]}", library)
        elif cited is None:
            cited = _resolved(library.with_id(label), f'footnote "{label}"', library)
        yield Citation(*match.span(), "footnote", *cited)


def find_ids(text: str, library: Library) -> Iterator[Citation]:
    """Yield ids of passages, words of their shape ("HR-99" beside "HR-12"), and anything like an id in
    brackets."""
    shapes: dict[str, None] = {}
    for id in library.ids:
        library.tick()
        for match in re.finditer(rf"(?<![\w-]){re.escape(id)}(?![\w-])", text):
            plain = id.isalpha() or id.isdecimal()
            if is_wrapped(text, *match.span()) or (not plain and len(id) > 1):
                yield marked(text, *match.span(), "id", library.whole([library.with_id(id) or 0]))
        if re.search(r"[^\W\d]", id) and re.search(r"\d", id) and len(id) < 60:
            shapes[re.sub(r"\d+", r"\\d{1,9}", re.escape(id))] = None
    like = "|".join(list(shapes)[:_SHAPES])
    patterns = [_UNKNOWN_ID, *([re.compile(rf"(?<![\w-])(?:{like})(?![\w-])")] if like else [])]
    for pattern in patterns:
        for match in pattern.finditer(text):
            library.tick()
            if library.with_id(match[0]) is None and not library.says_exactly(match[0]):
                yield marked(text, *match.span(), "id", (), one_line(match[0], 60))


def find_titles(text: str, library: Library) -> Iterator[Citation]:
    """Yield titles of passages, and names of documents that are cited. A title that is no document's, such as
    a person's name, counts only where "according to", brackets or quotation marks make it a citation."""
    for title in dict.fromkeys(library.titles):
        library.tick()
        start = text.find(title) if len(title) > 2 else -1
        while start >= 0:
            end = _end(text, start + len(title))
            is_word = not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum()
            if is_word and (_is_document(title) or end > start + len(title) or _is_source(text, start, end)):
                yield _document(text, start, end, library)
            start = text.find(title, end)
    for match in _QUOTED.finditer(text):
        library.tick()
        group = "name" if match["name"] is not None else "star"
        start, end = match.span(group)
        if is_announced(text, start - 1) and (_is_document(match[group]) or library.named(match[group])):
            yield _document(text, start, end, library)
    for match in _NAME.finditer(text):
        library.tick()
        start = match.start() + _opening(match[0])
        name = text[start : match.end()]
        end = _end(text, match.end())
        if not name[:1].isupper() or not _is_document(name):
            continue
        cited = len(name.split()) > 1 and (
            end > match.end() or is_cited(text, start, end) or speaks_on(text, end)
        )
        if cited and (library.titled(name) or not (library.mentioned(name) or library.mentions(name))):
            yield _document(text, start, end, library)


def _opening(words: str) -> int:
    """Return the length of the words before a name that a capital makes look like its first."""
    length = 0
    for word in words.split(" "):
        if word.lower() not in _NO_START:
            return length
        length += len(word) + 1
    return len(words)


def _document(text: str, start: int, end: int, library: Library) -> Citation:
    before = _PREFIX.search(text[max(start - 40, 0) : start])
    start -= len(before[0]) if before else 0
    name = text[start:end]
    numbers = library.titled(name)
    return marked(text, start, end, "title", library.whole(numbers), "" if numbers else one_line(name, 80))


def _is_inline(text: str, match: re.Match[str]) -> bool:
    """Say whether a link is a part of the sentence: not after it in brackets, and not a bare number."""
    if in_brackets(text, match.start()) or match["text"].strip("[]").isdigit():
        return False
    return is_cited(text, match.start(), match.end())


def _is_document(name: str) -> bool:
    return not _NOUNS.isdisjoint(re.findall(r"\w+", name.lower()))


def _is_source(text: str, start: int, end: int) -> bool:
    return is_cited(text, start, end) or is_quoted(text, start, end) or is_wrapped(text, start, end)


def _end(text: str, end: int) -> int:
    """Return the end of a name with its version or year."""
    for pattern in (_SUFFIX, _YEAR, _NUMBER):
        match = pattern.match(text, end, end + 40)
        if match is not None:
            # One less for a bracket that it did not open.
            end = match.end() + match[0].count("(") - match[0].count(")")
    return end


def _by_target(target: str, library: Library) -> tuple[tuple[Part, ...], str] | None:
    last = target.rstrip("/").rpartition("/")[2]
    for written in (target, target.lstrip("#"), last, last.rpartition(".")[0]):
        passage = library.with_id(written) if written else None
        if passage is not None:
            return library.whole([passage]), ""
    match = re.fullmatch(r"#?(?:passage|source|doc|document|ref)?[-_]?(\d{1,6})", target, re.I)
    if match is None:
        return None
    return _resolved(library.numbered(int(match[1])), f"passage {match[1]}", library)


def named_by(words: str, library: Library) -> tuple[tuple[Part, ...], str] | None:
    """Return what words alone cite (an id, a title, a passage) and what is missing; None where they name
    nothing of the kind."""
    words = words.strip().rstrip(".")[:300]
    if not words:
        return None
    passage = library.with_id(words)
    if passage is not None or words.isdecimal():
        passage = library.numbered(int(words[:9])) if passage is None else passage
        return _resolved(passage, f"passage {words[:9]}", library)
    titled = library.titled(words)
    if titled:
        return library.whole(titled), ""
    citations = chain(
        find_passages(words, library),
        find_marks(words, library),
        find_ids(words, library),
        find_titles(f"({words})", library),
    )
    return next(((citation.parts, citation.missing) for citation in citations), None)


def _resolved(passage: int | None, name: str, library: Library) -> tuple[tuple[Part, ...], str]:
    """Return a whole passage; without one, its name as missing."""
    return ((), name) if passage is None else (library.whole([passage]), "")
