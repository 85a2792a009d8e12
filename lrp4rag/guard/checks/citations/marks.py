"""Citations that count passages: `[1, 2]`, "passages 1-3", "the second passage", superscripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.numerals import ORDINALS as EVERY_ORDINAL
from lrp4rag.claims.units import UNITS
from lrp4rag.claims.written import SMALL_NUMBERS
from lrp4rag.guard.checks.citations.citation import Citation, Format, Part
from lrp4rag.guard.checks.citations.context import in_brackets, is_cited, with_marks
from lrp4rag.guard.checks.citations.library import Library

_SEVERAL = r"\d{1,6}(?: ?(?:, ?(?:and |or )?|;|[-\u2010-\u2015]|and |or |& ?|to ) ?#?\d{1,6}){0,30}"
_BRACKET = re.compile(
    rf"[\[\u3010]\^?(?P<numbers>{_SEVERAL})(?:\u2020[^\[\]\u3010\u3011\n]{{0,80}})?[\]\u3011](?!\()"
)
_ROUND = re.compile(
    r"(?<=[\w.,%]) ?\((?P<numbers>\d{1,2}(?:, ?\d{1,2}){0,5})\)(?=\s*(?:[.,;:!?]|$))", re.MULTILINE
)
_ONE = re.compile(r"(?P<range>[-\u2010-\u2015] ?|to )?#?(?P<number>\d{1,6})")
_CARDINALS, ORDINALS = SMALL_NUMBERS[1:11], EVERY_ORDINAL[:10]
_OWN = "passages?|excerpts?|snippets?"
_OTHER = r"sources?|documents?|docs?\.?|contexts?|references?|refs?\."
_PASSAGE = re.compile(
    rf"(?<![\w-])(?:(?P<own>{_OWN})|(?:{_OTHER}))(?: (?:no\.|number))?(?::? ?[#\[(]?| )"
    rf"(?P<numbers>{_SEVERAL}|(?:{'|'.join(_CARDINALS)})\b)(?![\w%]|[.,]\d)[\])]?",
    re.IGNORECASE,
)
_NTH = rf"(?:{'|'.join(ORDINALS)}|last|final)"
_ORDINAL = re.compile(
    rf"\b(?P<numbers>{_NTH}(?:(?:, | and |, and )(?:the )?{_NTH}){{0,5}}) (?:(?P<own>{_OWN})|(?:{_OTHER}))\b",
    re.IGNORECASE,
)
_DIGITS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_SUPERSCRIPT = re.compile(
    rf"(?P<digits>[{_DIGITS}]{{1,3}}(?:[,\u02d2\u22c5\u00b7 ][{_DIGITS}]{{1,3}}){{0,9}})"
    r"|<sup>\[?(?P<tag>\d{1,3})\]?</sup>"
)
_INTERVAL = re.compile(
    r"\b(?:in|range|interval|scale of|between|from|within)(?: the (?:range|interval))? \Z", re.I
)
_LENGTHS = {"millimeter", "centimeter", "meter", "kilometer", "inch", "foot", "yard", "mile"}


def find_marks(text: str, library: Library) -> Iterator[Citation]:
    """Numbers in brackets: "[1]", "[^1]", "【1†source】", and "(7)" at the end of a clause where
    there is such a passage. An index ("a[0]"), an interval ("in [0, 1]") and a year are none."""
    for match in _BRACKET.finditer(text):
        if not _is_index(text, match, library) and not _is_interval(text, match, library):
            yield numbered(match, library, "number", _numbers(match["numbers"], len(library.texts)))
    for match in _ROUND.finditer(text):
        numbers = _numbers(match["numbers"], len(library.texts))
        if max(numbers) <= len(library.texts) and not library.says_exactly(match[0].strip()):
            start = text.index("(", match.start())
            yield Citation(start, match.end(), "number", *_resolved(library, numbers))


def find_passages(text: str, library: Library) -> Iterator[Citation]:
    """Numbers behind "passage", "source" and the like, and ordinals before them."""
    for match in _PASSAGE.finditer(text):
        if not match["own"] and library.says(match[0]):
            continue
        written = match["numbers"].lower()
        known = _CARDINALS.index(written) + 1 if written in _CARDINALS else 0
        numbers = [known] if known else _numbers(written, len(library.texts))
        opening, closing = text[match.start() : match.end()].count("["), match[0].endswith("]")
        end = match.end() - (match[0][-1] in ")]" and not (opening and closing) and not _opened(match[0]))
        yield _placed(text, match.start(), end, library, numbers)
    for match in _ORDINAL.finditer(text):
        if match["own"] or is_cited(text, _before_the(text, match.start()), match.end()):
            words = re.findall(r"\w+", match["numbers"].lower())
            known_words = [word for word in words if word not in ("and", "the")]
            numbers = [
                ORDINALS.index(word) + 1 if word in ORDINALS else len(library.texts) for word in known_words
            ]
            yield _placed(text, *match.span(), library, numbers)


def find_superscripts(text: str, library: Library) -> Iterator[Citation]:
    """Raised numbers that are no power and no part of a unit."""
    for match in _SUPERSCRIPT.finditer(text):
        if match["tag"] is None and _is_power(text, match.start(), library):
            continue
        raised = match["tag"] or "".join(
            str(_DIGITS.index(sign)) if sign in _DIGITS else "," for sign in match["digits"]
        )
        yield numbered(match, library, "superscript", [int(one) for one in raised.split(",") if one])


def numbered(match: re.Match[str], library: Library, form: Format, numbers: list[int]) -> Citation:
    """Return a mark that cites passages by their numbers."""
    return Citation(*match.span(), form, *_resolved(library, numbers))


def _placed(text: str, start: int, end: int, library: Library, numbers: list[int]) -> Citation:
    inline = not in_brackets(text, start)
    return Citation(*with_marks(text, start, end), "passage", *_resolved(library, numbers), inline=inline)


def _resolved(library: Library, numbers: list[int]) -> tuple[tuple[Part, ...], str]:
    found = {number: library.numbered(number) for number in numbers}
    missing = [str(number) for number, passage in found.items() if passage is None]
    known = sorted({passage for passage in found.values() if passage is not None})
    some = f"passage {', '.join(missing[:5])}" if missing else ""
    return library.whole(known), some


def _numbers(written: str, count: int) -> list[int]:
    """Return each number of a list, ranges filled; so many at most that none of a long range is lost that
    exists, and one that does not exist is kept."""
    numbers: list[int] = []
    for match in _ONE.finditer(written):
        number = int(match["number"])
        if match["range"] and numbers and numbers[-1] < number:
            numbers += range(numbers[-1] + 1, min(number, numbers[-1] + 1 + count))
        numbers.append(number)
    return numbers


def _opened(written: str) -> bool:
    return "(" in written or "[" in written


def _before_the(text: str, start: int) -> int:
    return start - 4 if text[max(start - 4, 0) : start].lower() == "the " else start


def _is_index(text: str, match: re.Match[str], library: Library) -> bool:
    """Say whether it stands behind a name as in a program: `a[0]`, `rows[1].name`, `f()[2]`."""
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
    """Say whether a raised number is part of what it stands behind: "10⁵", "km²", "x²"."""
    word = re.search(r"[^\W_]{0,30}\Z", text[max(start - 30, 0) : start])
    before = word[0] if word else ""
    if not before:
        return not text[start - 1 : start].strip() if start else True
    if before[-1].isdigit():
        return len(before) < 3 and text[start - len(before) - 1 : start - len(before)] not in (
            ":",
            ".",
            ",",
            "-",
        )
    return len(before) < 2 or UNITS.get(before) in _LENGTHS or library.says_exactly(before + text[start])
