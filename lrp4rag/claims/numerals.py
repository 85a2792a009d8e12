"""Numbers of chapters, wars and kings: Roman numerals and ordinals in words, with the noun that they
number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.value import Value

_FIRST_TO_TWENTIETH = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
ORDINALS = _FIRST_TO_TWENTIETH.split()
ORDINALS += [f"twenty-{word}" for word in ORDINALS[:9]]
"""Words of the first to the 29th."""
_ROMAN = re.compile(
    r"(?=[IVXLCDM]{2,8}\Z|[IVX]\Z)M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
)
_SIGNS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_LABELS = (
    "chapter|section|part|phase|type|stage|class|grade|level|tier|annex|appendix|article|volume|vol|act|book|"
    "category|group|zone|schedule|title|paragraph|clause|rule|unit|module|lesson|platform|gate|room|floor|pier|"
    "terminal|route|line|bus|tram|form|exercise|shelter|source|document|page"
)
_LABEL = re.compile(
    rf"\b(?P<label>{_LABELS})(?:\.|\.? (?:no\.?|nr\.?|number|#))? ?"
    r"(?P<number>(?-i:[IVXLCDM]{1,8})\b|\d{1,4}(?:\.\d{1,3})*[a-z]?\b)(?![.,]\d|['\u2019]?s?\w)",
    re.IGNORECASE,
)
_LINE = re.compile(r"^[ \t*#>-]*\Z|\n[ \t*#>-]*\Z")


def number_of_roman(written: str) -> int | None:
    """Return the number of a Roman numeral in capitals; None for any other word. A single letter other than
    I, V and X is a letter."""
    if not _ROMAN.fullmatch(written):
        return None
    values = [_SIGNS[sign] for sign in written]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def number_of_ordinal(word: str) -> int | None:
    """Return the number of an ordinal up to the 29th: 1 of "first"; None of any other word."""
    small = word.lower()
    return ORDINALS.index(small) + 1 if small in ORDINALS else None


def find_labels(text: str) -> Iterator[Value]:
    """Find numbered labels: "Chapter IV", "type 2", "phase III". The unit is the word: chapters are compared
    with chapters. At the beginning of a line with a colon it is a heading."""
    for match in _LABEL.finditer(text):
        line = text[max(match.start() - 20, 0) : match.start()]
        if (
            (match.start() < 20 or "\n" in line)
            and _LINE.search(line)
            and text[match.end() : match.end() + 1] in (":", ")")
        ):
            continue
        label, written = match["label"].lower(), match["number"]
        number = number_of_roman(written)
        if number is None and not written[0].isdigit():
            continue
        key = (label, str(number) if number is not None else written.lower())
        yield Value("name", *match.span(), match[0], unit=f"{label} number", key=key)
