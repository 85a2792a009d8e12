"""Find what a response cites, and where in the passages it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lrp4rag.claims.words import word_set
from lrp4rag.guard.checks.citations.authorities import find_authorities
from lrp4rag.guard.checks.citations.citation import Citation, Format, Part
from lrp4rag.guard.checks.citations.context import in_brackets, with_marks
from lrp4rag.guard.checks.citations.labels import Label, find_labels
from lrp4rag.guard.checks.citations.library import Library
from lrp4rag.guard.checks.citations.marks import find_marks, find_passages, find_superscripts
from lrp4rag.guard.checks.citations.named import find_footnotes, find_ids, find_links, find_titles, named_by
from lrp4rag.util.text import blanked

_INLINE_CODE = re.compile(r"`[^`\n]{1,500}`|!\[[^\[\]\n]{0,300}\]\([^()\n]{0,1000}\)")
_DEFINITION = re.compile(r"^[ \t]{0,3}\[(?P<label>\^?[\w-]{1,30})\]:[ \t]{0,9}(?P<says>[^\n]{0,2000})$", re.M)
_LISTED = re.compile(
    r"^[ \t#*]{0,8}(?:Sources|References|Bibliography|Citations)[ \t*:]{0,4}\n"
    r"(?:[ \t*-]{0,4}\[\d{1,6}\][^\n]*\n?)+",
    re.M | re.I,
)
_ENTRY = re.compile(r"^[ \t*-]{0,4}\[(?P<label>\d{1,6})\][ \t:.-]{0,4}(?P<says>[^\n]{0,2000})$", re.M)
_BETWEEN = re.compile(
    r"[\"\u201d*_)]{0,3}[,:;]? ?(?:(?:of|in|from|under) )?(?:(?:the|our|its) )?[\"\u201c*_(\[]{0,3}"
)
_LAW = re.compile(
    r"(?:,? of (?:the )?| )"
    r"(?P<name>[A-Z]{3,12}\b|(?<=the )[A-Z]\w{1,30}(?: (?:of |on |and |the |for ){0,2}[A-Z]\w{1,30}){0,7})"
)
_LAW_BEFORE = re.compile(r"(?<!\w)(?P<name>[A-Z]{3,12}) \Z")
_NEAR = 16


def find_citations(text: str, library: Library, tick: Callable[[], None]) -> list[Citation]:
    """In the order of the text, none within another. Code, pictures and the definitions of footnotes hold
    none."""
    definitions = {match["label"]: match["says"] for match in _DEFINITION.finditer(text)}
    plain = blanked(_without_blocks(text), _INLINE_CODE, _DEFINITION)
    for match in _LISTED.finditer(plain):
        definitions |= {one["label"]: one["says"] for one in _ENTRY.finditer(match[0])}
    plain = blanked(plain, _LISTED)
    footnotes = {label.removeprefix("^"): says for label, says in definitions.items()}
    named = [
        *find_links(plain, library),
        *find_footnotes(plain, library, footnotes),
        *find_ids(plain, library, tick),
        *find_titles(plain, library, tick),
        *find_passages(plain, library),
    ]
    documents = _apart(named)
    labelled = list(_labelled(plain, documents, library, tick))
    counted = (_as_listed(plain, one, definitions, library) for one in find_marks(plain, library))
    marks = [*counted, *find_superscripts(plain, library)]
    authorities = find_authorities(plain, library, tick)
    return sorted(_apart([*labelled, *documents, *marks, *authorities]), key=lambda one: one.start)


def _as_listed(text: str, mark: Citation, definitions: dict[str, str], library: Library) -> Citation:
    """Return a mark with what the answer's own list of sources has for its number, where it has that."""
    known = named_by(definitions.get(text[mark.start + 1 : mark.end - 1], ""), library)
    return mark if known is None else replace(mark, parts=known[0], missing=known[1])


def _labelled(
    text: str, documents: list[Citation], library: Library, tick: Callable[[], None]
) -> Iterator[Citation]:
    """Parts of documents. A document that is named beside one is where it must be."""
    ends = {one.end: one for one in documents if one.format in ("title", "id", "passage")}
    starts = {one.start: one for one in documents if one.format in ("title", "id", "passage")}
    for label in find_labels(text):
        tick()
        if _is_part_of_name(text, label, library):
            continue
        start, end, among = label.start, label.end, None
        before = next((ends[k] for k in range(start, max(start - _NEAR, 0), -1) if k in ends), None)
        after = next((starts[k] for k in range(end, end + _NEAR) if k in starts), None)
        if after is not None and _BETWEEN.fullmatch(text, end, after.start):
            end, among = after.end, after
        elif before is not None and _BETWEEN.fullmatch(text, before.end, start):
            start, among = before.start, before
        else:
            start, end, among = _with_law(text, label, library)
        parts: tuple[Part, ...]
        if among is not None and among.missing:
            parts, missing = (), among.missing
        else:
            parts, lost = library.parts(label, None if among is None else among.passages)
            missing = text[start:end] if lost else ""
        form: Format = "standard" if label.standard else "article" if label.family == "article" else "section"
        inline = not in_brackets(text, start)
        yield Citation(*with_marks(text, start, end), form, parts, missing, inline=inline)


def _with_law(text: str, label: Label, library: Library) -> tuple[int, int, Citation | None]:
    """Return a label with the law that it is of, and that law as a citation."""
    start, end = label.start, label.end
    if label.standard is not None:
        return start, end, None
    after = _LAW.match(text, end, end + 200)
    before = _LAW_BEFORE.search(text[max(start - 20, 0) : start])
    if after is not None:
        name, end = after["name"], after.end()
    elif before is not None:
        name, start = before["name"], start - len(before[0])
    else:
        return start, end, None
    numbers = library.named(name)
    return start, end, Citation(start, end, "title", library.whole(numbers), "" if numbers else name)


def _is_part_of_name(text: str, label: Label, library: Library) -> bool:
    """Say whether the passages use it as a word for something: "Section 8 housing"."""
    after = re.match(r" ([a-z]{4,20})\b", text[label.end : label.end + 25])
    if label.standard is not None or after is None or after[1] in _VERBLIKE or after[1].endswith("s"):
        return _is_adjective(text, label, after, library)
    return library.says(text[label.start : label.end] + after[0])


_VERBLIKE = word_set("that which must will shall gave have from with when where")


def _is_adjective(text: str, label: Label, after: re.Match[str] | None, library: Library) -> bool:
    """The same before a plural, which may as well be a verb: only behind "a", "the", "with", "for"."""
    if after is None or label.standard is not None or after[1] in _VERBLIKE:
        return False
    before = text[max(label.start - 6, 0) : label.start].lower()
    return before.endswith((" a ", " the ", " with ", " for ")) and library.says(
        text[label.start : label.end] + after[0]
    )


def _without_blocks(text: str) -> str:
    """Return the text with its fenced code blanked, character for character."""
    pieces = text.split("```")
    if len(pieces) < 3:
        return text
    return "   ".join(
        re.sub(r"[^\n]", " ", piece) if k % 2 and k < len(pieces) - 1 else piece
        for k, piece in enumerate(pieces)
    )


def _apart(citations: Iterable[Citation]) -> list[Citation]:
    """Those that share no character with one before them."""
    taken: set[int] = set()
    kept = []
    for one in citations:
        if taken.isdisjoint(range(one.start, one.end)):
            taken.update(range(one.start, one.end))
            kept.append(one)
    return kept
