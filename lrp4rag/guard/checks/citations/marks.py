"""Citations that count passages: `[1, 2]`, "passages 1-3", "the second passage", superscripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.numerals import ORDINALS as EVERY_ORDINAL
from lrp4rag.claims.units import UNITS
from lrp4rag.claims.written import SMALL_NUMBERS
from lrp4rag.guard.checks.citations.citation import Citation, Part
from lrp4rag.guard.checks.citations.context import is_cited, marked
from lrp4rag.guard.checks.citations.library import Library

_SEVERAL = r"\d{1,6}(?: ?(?:, ?(?:and |or )?|;|[-\u2010-\u2015]|and |or |& ?|to ) ?#?\d{1,6}){0,30}"
_BRACKET = re.compile(
    rf"[\[\u3010]\^?(?P<numbers>{_SEVERAL})(?:\u2020[^\[\]\u3010\u3011\n]{{0,80}})?[\]\u3011](?!\()"
)
_ROUND = re.compile(
    r"(?<=[\w.,%]) ?\((?P<numbers>\d{1,2}(?:, ?\d{1,2}){0,5})\)(?=\s*(?:[.,;:!?]|$))", re.MULTILINE
)
_ENTRY = re.compile(r"(?P<range>[-\u2010-\u2015] ?|to )?#?(?P<number>\d{1,6})")
_CARDINALS, ORDINALS = SMALL_NUMBERS[1:11], EVERY_ORDINAL[:10]
_OWN = "passages?|excerpts?|snippets?"
_ANY = r"sources?|documents?|docs?\.?|contexts?|references?|refs?\."
_PASSAGE = re.compile(
    rf"(?<![\w-])(?:(?P<own>{_OWN})|(?:{_ANY}))(?: (?:no\.|number))?(?::? ?[#\[(]?| )"
    rf"(?P<numbers>{_SEVERAL}|(?:{'|'.join(_CARDINALS)})\b)(?![\w%]|[.,]\d)[\])]?",
    re.IGNORECASE,
)
_NTH = rf"(?:{'|'.join(ORDINALS)}|last|final)"
_ORDINAL = re.compile(
    rf"\b(?P<numbers>{_NTH}(?:(?:, | and |, and )(?:the )?{_NTH}){{0,5}}) (?:(?P<own>{_OWN})|(?:{_ANY}))\b",
    re.IGNORECASE,
)
_DIGITS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_LOWERED = str.maketrans(_DIGITS, "0123456789")
_SUPERSCRIPT = re.compile(
    rf"(?P<digits>[{_DIGITS}]{{1,3}}(?:[,\u02d2\u22c5\u00b7 ][{_DIGITS}]{{1,3}}){{0,9}})"
    r"|<sup>\[?(?P<tag>\d{1,3})\]?</sup>"
)
_INTERVAL = re.compile(
    r"\b(?:in|range|interval|scale of|between|from|within)(?: the (?:range|interval))? \Z", re.I
)
_LENGTHS = {"millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile"}


def find_marks(text: str, library: Library) -> Iterator[Citation]:
    """Yield numbers in brackets: "[1]", "[^1]", "【1†source】", and "(7)" at the end of a clause where
    there is such a passage. An index ("a[0]"), an interval ("in [0, 1]") and a year are not citations."""

    for match in _BRACKET.finditer(text):
        if not _is_index(text, match, library) and not _is_interval(text, match, library):
            numbers = _numbers(match["numbers"], len(library.texts))
            yield Citation(*match.span(), "number", *_resolved(library, numbers))
    for match in _ROUND.finditer(text):
        numbers = _numbers(match["numbers"], len(library.texts))
        if max(numbers) <= len(library.texts) and not library.says_exactly(match[0].strip()):
            start = text.index("(", match.start())
            yield Citation(start, match.end(), "number", *_resolved(library, numbers))


def find_passages(text: str, library: Library) -> Iterator[Citation]:
    """Yield numbers after "passage", "source" and the like, and ordinals before them."""
    for match in _PASSAGE.finditer(text):
        if not match["own"] and library.says(match[0]):
            continue
        written = match["numbers"].lower()
        if written in _CARDINALS:
            numbers = [_CARDINALS.index(written) + 1]
        else:
            numbers = _numbers(written, len(library.texts))
        is_outside = match[0][-1] in ")]" and not re.search(r"[(\[]", match[0])  # it closes another bracket
        parts = _resolved(library, numbers)
        yield marked(text, match.start(), match.end() - is_outside, "passage", *parts)
    for match in _ORDINAL.finditer(text):
        if match["own"] or is_cited(text, _before_the(text, match.start()), match.end()):
            numbers = [
                ORDINALS.index(word) + 1 if word in ORDINALS else len(library.texts)
                for word in re.findall(r"\w+", match["numbers"].lower())
                if word not in ("and", "the")
            ]
            yield marked(text, *match.span(), "passage", *_resolved(library, numbers))


def find_superscripts(text: str, library: Library) -> Iterator[Citation]:
    """Yield raised numbers that are no power and no part of a unit."""
    for match in _SUPERSCRIPT.finditer(text):
        if match["tag"] is None and _is_power(text, match.start(), library):
            continue
        raised = match["tag"] or match["digits"].translate(_LOWERED)
        numbers = [int(number) for number in re.findall(r"\d+", raised)]
        yield Citation(*match.span(), "superscript", *_resolved(library, numbers))


def _resolved(library: Library, numbers: list[int]) -> tuple[tuple[Part, ...], str]:
    """Return the passages with some numbers, and in words the numbers that no passage has."""
    by_number = {number: library.numbered(number) for number in numbers}
    missing = [str(number) for number, passage in by_number.items() if passage is None]
    passages = sorted({passage for passage in by_number.values() if passage is not None})
    return library.whole(passages), f"passage {', '.join(missing[:5])}" if missing else ""


def _numbers(written: str, count: int) -> list[int]:
    """Return the numbers of a list with its ranges filled; of a long range, every number of a passage and the
    next, which no passage has."""
    numbers: list[int] = []
    for match in _ENTRY.finditer(written):
        number = int(match["number"])
        if match["range"] and numbers and numbers[-1] < number:
            numbers += range(numbers[-1] + 1, min(number, numbers[-1] + 1 + count))
        numbers.append(number)
    return numbers


def _before_the(text: str, start: int) -> int:
    return start - 4 if text[max(start - 4, 0) : start].lower() == "the " else start


def _is_index(text: str, match: re.Match[str], library: Library) -> bool:
    """Say whether a number in brackets follows a name as in a program: `a[0]`, `rows[1].name`, `f()[2]`."""
    before = re.search(r"(?:\w|\(\)){1,40}\Z", text[max(match.start() - 40, 0) : match.start()])
    if before is None:
        return False
    word, after = before[0], text[match.end() : match.end() + 3]
    return (
        int(re.match(r"\d+", match["numbers"])[0]) == 0  # type: ignore[index]
        or (len(word) < 2 and not word.isdigit())
        or "_" in word
        or word.endswith(")")
        or bool(re.match(r"\w|\.\w|\(| ?[=+*/<]|\[[a-z\"']", after))
        or library.says_exactly(f"{word}[")
    )


def _is_interval(text: str, match: re.Match[str], library: Library) -> bool:
    written = match["numbers"]
    if written.isdigit():
        return len(written) == 4 and written[:2] in ("18", "19", "20") and len(library.texts) < int(written)
    first = int(re.match(r"\d+", written)[0])  # type: ignore[index]
    announced = _INTERVAL.search(text[max(match.start() - 30, 0) : match.start()])
    return (
        bool(announced)
        or (first == 0 and written.count(",") == 1)
        or (len(written) == 9 and library.says(written))  # the years "2019-2021"
    )


def _is_power(text: str, start: int, library: Library) -> bool:
    """Say whether a raised number is part of the word before it: "10⁵", "km²", "x²"."""
    word = re.search(r"[^\W_]{0,30}\Z", text[max(start - 30, 0) : start])
    before = word[0] if word else ""
    if not before:
        return not text[start - 1 : start].strip() if start else True
    if before[-1].isdigit():
        ahead = text[start - len(before) - 1 : start - len(before)]
        return len(before) < 3 and ahead not in (":", ".", ",", "-")
    return len(before) < 2 or UNITS.get(before) in _LENGTHS or library.says_exactly(before + text[start])
