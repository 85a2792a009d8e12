"""`Label`: "Section 4.2", "Art. 17", "ISO 27001:2022 8.13": parts of documents that have a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lrp4rag.claims.numerals import number_of_roman
from lrp4rag.util.sentences import sentences_in

_FAMILIES = {
    "section": ("section", "sections", "sec.", "\u00a7", "\u00a7\u00a7", "clause", "clauses", "control"),
    "article": ("article", "articles", "art.", "arts."),
    "chapter": ("chapter", "chapters"),
    "annex": ("annex", "appendix", "schedule"),
}
_FAMILY = {word: family for family, words in _FAMILIES.items() for word in words}
_WORDS = "|".join(re.escape(word) for word in sorted(_FAMILY, key=len, reverse=True))
_NUMBER = r"(?:[A-Z]{1,2}[.-]?)?\d{1,4}(?:\.\d{1,4}){0,5}[a-z]?(?!\w)(?:\([a-z0-9]{1,4}\)){0,3}"
_ROMAN = r"[IVXLCDM]{2,8}\b"
_MORE = rf"(?:(?:, ?|,? (?:and|or|&|to) | ?[-\u2013] ?){_NUMBER}){{0,9}}"
_LABEL = re.compile(
    rf"(?<!\w)(?P<word>(?i:{_WORDS}))(?P<many>(?<=ns)|(?<=es)|(?<=rs)|(?<=ts\.)|(?<=\u00a7\u00a7))?[ \u00a0]?"
    rf"(?P<numbers>(?:{_NUMBER}|{_ROMAN}|[A-Z]\b)(?(many){_MORE}|(?:[-\u2013]{_NUMBER})?))(?![\w%])"
)
_BARE = re.compile(r"^[ \t#*]{0,8}(?P<number>\d{1,3}(?:\.\d{1,3}){0,5})\.?[ \t*]{1,4}(?=[A-Z])", re.MULTILINE)
_ONE = re.compile(rf"(?P<range>[-\u2013] ?|to )?(?P<number>{_NUMBER}|{_ROMAN}|[A-Z]\b)")

_BODIES = r"ISO(?:/IEC)?|IEC|IEEE|NIST(?: SP)?|ASTM|ANSI|DIN|EN|BS|RFC|PCI[ -]DSS|FIPS|ETSI|ITU-T"
_POINT = r"\d{1,3}(?:\.\d{1,3})"
_CLAUSE = (
    r"(?:,? (?:clause|section|control|requirement|annex|\u00a7) ?"
    rf"(?P<named>(?:[A-Z]{{1,2}}[.-])?{_POINT}{{0,4}})"
    rf"|,? (?P<bare>[A-Z]{{1,2}}[.-]{_POINT}{{0,4}}|{_POINT}{{1,4}}))(?![\w%])"
)
_STANDARD = re.compile(
    rf"\b(?P<bodies>(?:(?:{_BODIES})[ -]){{1,3}})"
    rf"(?P<number>\d{{1,5}}(?:[.-]\d{{1,4}})?)(?::(?P<year>\d{{4}}))?(?!\w)(?:{_CLAUSE})?",
)


@dataclass(frozen=True, slots=True)
class Label:
    """Characters `start` to `end` of a text that names parts `numbers` of a `family` of parts, and the
    standard that they are of, where they are: its number, and its year or ""."""

    start: int
    end: int
    family: str
    numbers: tuple[str, ...]
    standard: tuple[str, str] | None = None


def find_labels(text: str) -> list[Label]:
    """In the order of the text: parts of documents, and standards, with their clauses or without."""
    standards = list(_standards(text))
    inside = {start for one in standards for start in range(one.start, one.end)}
    found = [
        Label(*match.span(), _FAMILY[match["word"].lower()], _numbers(match["numbers"]))
        for match in _LABEL.finditer(text)
        if match.start() not in inside
    ]
    return sorted([*standards, *found], key=lambda one: one.start)


def find_headings(text: str) -> list[Label]:
    """Numbers that open a line, "4.2 Parental leave": a document names its own parts so."""
    return [
        Label(match.start("number"), match.end("number"), "section", (match["number"],))
        for match in _BARE.finditer(text)
    ]


def within(number: str, other: str) -> bool:
    """Say whether a part is another or lies in it: 4.2.1 in 4.2, 17(1) in 17."""
    return number == other or (number.startswith(other) and number[len(other)] in ".(")


def same_standard(one: Label, other: Label) -> bool:
    """Say whether both are of one standard; a year counts where both have it."""
    if one.standard is None or other.standard is None or one.standard[0] != other.standard[0]:
        return False
    return one.standard[1] == other.standard[1] or not (one.standard[1] and other.standard[1])


def parts_of(text: str) -> list[tuple[Label, int, int]]:
    """Return each label of a passage with the characters that stand under it.

    One that opens a sentence or a line is a heading: what follows is under it, to the next. Any other is
    about its sentence; where a sentence has several, about what follows it, or in brackets about what is
    before it.
    """
    sentences = sentences_in(text)
    begins = {start for start, _ in sentences}
    labels = sorted([*find_labels(text), *find_headings(text)], key=lambda one: one.start)
    heads = [one for one in labels if one.start in begins or text[: one.start].rstrip(" \t#*")[-1:] == "\n"]
    found, position = [], 0
    head_ends = _ends(heads, len(text))
    for number, one in enumerate(labels):
        if one in head_ends:
            found.append((one, one.start, head_ends[one]))
            continue
        while position + 1 < len(sentences) and sentences[position + 1][0] <= one.start:
            position += 1
        start, end = sentences[position] if sentences else (0, len(text))
        if text[one.start - 1 : one.start] in ("(", "["):
            start = max([start, *(other.end for other in labels[max(number - 1, 0) : number])])
        elif number + 1 < len(labels):
            end = min(end, max(labels[number + 1].start, one.end))
        found.append((one, min(start, one.start), max(end, one.end)))
    return found


def _ends(heads: list[Label], length: int) -> dict[Label, int]:
    """Where each heading's part ends: at the next heading of its family that is not within it."""
    ends: dict[Label, int] = {}
    open_: list[Label] = []
    for one in heads:
        for other in list(open_):
            inner = one.numbers and other.numbers and within(one.numbers[0], other.numbers[-1])
            if one.family == other.family and not inner:
                ends[other] = one.start
                open_.remove(other)
        open_.append(one)
    return {**dict.fromkeys(open_, length), **ends}


def _standards(text: str) -> Iterator[Label]:
    for match in _STANDARD.finditer(text):
        clause = match["named"] or match["bare"]
        identity = (match["number"], match["year"] or "")
        yield Label(*match.span(), "section", (clause,) if clause else (), identity)


def _numbers(written: str) -> tuple[str, ...]:
    """Return each number, in digits; a short range of whole numbers is filled."""
    found: list[str] = []
    for match in _ONE.finditer(written):
        roman = number_of_roman(match["number"])
        number = match["number"] if roman is None else str(roman)
        if match["range"] and found and found[-1].isdecimal() and number.isdecimal():
            first, last = int(found[-1]), int(number)
            found += [str(between) for between in range(first + 1, min(last, first + 50))]
        found.append(number)
    return tuple(found)
