"""`Label`: "Section 4.2", "Art. 17", "ISO 27001:2022 8.13": parts of documents that have a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
_LINE = re.compile(r"\n[ \t#*]*")
_ENTRY = re.compile(rf"(?P<range>[-\u2013] ?|to )?(?P<number>{_NUMBER}|{_ROMAN}|[A-Z]\b)")

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
    """Characters `start` to `end` of a text, which name parts with some `numbers` of a `family` of parts, and
    the standard that these belong to, if any: its number, and its year or ""."""

    start: int
    end: int
    family: str
    numbers: tuple[str, ...]
    standard: tuple[str, str] | None = None


def find_labels(text: str) -> list[Label]:
    """Return the parts of documents, and the standards, with or without clauses, in the order of the text."""
    standards = list(_standards(text))
    inside = {start for standard in standards for start in range(standard.start, standard.end)}
    labels = [
        Label(*match.span(), _FAMILY[match["word"].lower()], _numbers(match["numbers"]))
        for match in _LABEL.finditer(text)
        if match.start() not in inside
    ]
    return sorted([*standards, *labels], key=lambda label: label.start)


def find_headings(text: str) -> list[Label]:
    """Return the numbers that open a line, "4.2 Parental leave", by which a document names its own parts."""
    return [
        Label(match.start("number"), match.end("number"), "section", (match["number"],))
        for match in _BARE.finditer(text)
    ]


def within(number: str, outer: str) -> bool:
    """Say whether a part is another or lies in it: 4.2.1 in 4.2, 17(1) in 17."""
    return number == outer or (number.startswith(outer) and number[len(outer)] in ".(")


def same_standard(first: Label, second: Label) -> bool:
    """Say whether both are of one standard; a year counts where both have it."""
    if first.standard is None or second.standard is None or first.standard[0] != second.standard[0]:
        return False
    years = (first.standard[1], second.standard[1])
    return years[0] == years[1] or not all(years)


def parts_of(text: str, tick: Callable[[], None]) -> list[tuple[Label, int, int]]:
    """Return each label of a passage with the characters that stand under it.

    A label that opens a sentence or a line is a heading: the text up to the next heading stands under it. Any
    other label is about its sentence; where a sentence has several, about the text after it, or in brackets
    about the text before it.
    """
    sentences = sentences_in(text)
    begins = {start for start, _ in sentences}
    labels = sorted([*find_labels(text), *find_headings(text)], key=lambda label: label.start)
    begins |= {match.end() for match in _LINE.finditer(text)}
    parts, position = [], 0
    ends = _ends([label for label in labels if label.start in begins], len(text))
    for number, label in enumerate(labels):
        tick()
        if label in ends:
            parts.append((label, label.start, ends[label]))
            continue
        while position + 1 < len(sentences) and sentences[position + 1][0] <= label.start:
            position += 1
        start, end = sentences[position] if sentences else (0, len(text))
        if text[label.start - 1 : label.start] in ("(", "["):
            start = max(start, labels[number - 1].end) if number else start
        elif number + 1 < len(labels):
            end = min(end, max(labels[number + 1].start, label.end))
        parts.append((label, min(start, label.start), max(end, label.end)))
    return parts


def _ends(headings: list[Label], length: int) -> dict[Label, int]:
    """Return where the part of each heading ends: at the next heading of its family that is not in it."""
    ends = dict.fromkeys(headings, length)
    open_: dict[tuple[str, str], list[Label]] = {}  # by family and number: a number may come again and again
    for heading in headings:
        for family, number in list(open_):
            inner = heading.numbers and number and within(heading.numbers[0], number)
            if family == heading.family and not inner:
                ends |= dict.fromkeys(open_.pop((family, number)), heading.start)
        open_.setdefault((heading.family, heading.numbers[-1] if heading.numbers else ""), []).append(heading)
    return ends


def _standards(text: str) -> Iterator[Label]:
    for match in _STANDARD.finditer(text):
        clause = match["named"] or match["bare"]
        identity = (match["number"], match["year"] or "")
        yield Label(*match.span(), "section", (clause,) if clause else (), identity)


def _numbers(written: str) -> tuple[str, ...]:
    """Return each number, in digits; a short range of whole numbers is filled."""
    numbers: list[str] = []
    for match in _ENTRY.finditer(written):
        roman = number_of_roman(match["number"])
        number = match["number"] if roman is None else str(roman)
        if match["range"] and numbers and numbers[-1].isdecimal() and number.isdecimal():
            first, last = int(numbers[-1]), int(number)
            numbers += [str(between) for between in range(first + 1, min(last, first + 50))]
        numbers.append(number)
    return tuple(numbers)
