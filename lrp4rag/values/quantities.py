"""Quantities: numbers in digits and words, with money, percent, units of measure, or what they count."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lrp4rag.values.units import MONEY, PERCENT, POUNDS, UNITS, in_base_unit
from lrp4rag.values.value import Value, without_overlaps
from lrp4rag.values.words import stop_words

SCALES = {
    **{"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12},
    **{"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9},
}


def _any_of(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


# Numbers in words: "nineteen", "forty-two", "a hundred and five", "two million three hundred thousand".
ONES = "zero|one|two|three|four|five|six|seven|eight|nine"
TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_BELOW_100 = rf"(?:(?:{_TENS})(?:[ -](?:{ONES}))?|{TEENS}|{ONES})"
_HUNDREDS = (
    rf"(?:{_BELOW_100}(?: hundred(?:(?: and)? {_BELOW_100})?)?|an? hundred(?:(?: and)? {_BELOW_100})?)"
)
_BIG = "(?:thousand|million|billion)"
_WORDS = rf"(?:(?:{_HUNDREDS}|an?) {_BIG}(?:(?: and)? {_HUNDREDS}(?: {_BIG})?){{0,2}}|{_HUNDREDS})"

_DIGITS = r"\d{1,3}(?:[,\u00a0\u202f '\u2019]\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:\.\d+)?"
_VULGAR = r"[\u00bc-\u00be\u2150-\u215e]"
_RATIO = r"[1-7]/[2-8](?![\d/])"
_HALF = r"[ -]and[ -](?:(?:a|one)[ -](?:half|quarter)|three[ -]quarters)\b(?! of\b)"
_GAP = r"[ \u00a0\u202f-]"
_WHOLE = rf"(?:{_GAP}(?:calendar|consecutive|full|whole|more|extra|additional) |{_GAP})?"
_WRITTEN = (*UNITS, *MONEY, *PERCENT, *POUNDS)
_UNIT_WORDS = ["%", *(word for word in _WRITTEN if re.fullmatch("[a-z ]{3,}", word))]
_UNIT_SIGNS = [word for word in (*UNITS, "\u20ac") if word not in _UNIT_WORDS]
UNIT = rf"(?:(?:{_any_of(_UNIT_SIGNS)})|(?i:{_any_of(_UNIT_WORDS)}))(?![\w\u00b2\u00b3])"
"""A regular expression for what may stand behind digits."""
_WORD_UNIT = rf"(?i:{_any_of(_UNIT_WORDS)})(?![\w\u00b2\u00b3])"  # "one m" is no metre
_SCALE = (
    r"(?P<scale>(?i:dozen|hundred|thousand|million|billion|trillion)\b|bn\b|[kK](?![\w/])"
    r"|(?(money)[mMbB](?!\w)|m(?= ?[\u20ac$\u00a3])))"
)
_NUMBER = re.compile(
    r"(?<![\w.,/])(?P<minus>[-\u2212](?=\d)|(?i:minus) )?"
    r"(?:(?P<money>US\$|[$\u20ac\u00a3\u00a5]|(?:USD|EUR|GBP|CHF|JPY)(?= ?\d)) ?)?"
    rf"(?:(?P<fraction>{_VULGAR}|{_RATIO})|(?P<digits>{_DIGITS})(?P<part> ?{_VULGAR}| {_RATIO})?"
    r"(?P<nth>st|nd|rd|th)?"
    rf"|(?P<words>\b(?i:{_WORDS})\b))"
    rf"(?P<half>{_HALF})?(?:{_GAP}?{_SCALE})?"
    rf"(?:{_WHOLE}(?P<unit>(?(words){_WORD_UNIT}|{UNIT})))?(?P<late>{_HALF})?"
)

# Phrases: "half an hour", "a quarter of the staff", "an hour and a quarter", "about an hour", "twice".
_OF_WHAT = rf"(?P<unit>million|billion|dozen|{_any_of(_UNIT_WORDS)})\b"
_PART = re.compile(
    r"\b(?P<part>three[ -]quarters|two[ -]thirds|(?:one|a)[ -](?:half|third|quarter)|half)"
    rf"(?:(?: of)?(?: an?| one)?[ -]{_OF_WHAT}|(?P<of_all> of\b)|(?![-\w]| past\b))",
    re.IGNORECASE,
)
_PARTS = {"half": 1 / 2, "quarter": 1 / 4, "quarters": 3 / 4, "third": 1 / 3, "thirds": 2 / 3}
_BEFORE_PART = re.compile(
    r"\b(?:by|about|around|nearly|almost|than|over|under|roughly|to|from) \Z", re.IGNORECASE
)
_NO_PART = re.compile(r"\b(?:first|second|other|latter|better) \Z", re.IGNORECASE)
_AN_HOUR = re.compile(
    rf"\ban? (?:(?P<dozen>dozen)|(?P<unit>hour|day|week|fortnight|month|year|decade)(?P<half>{_HALF})?)\b",
    re.IGNORECASE,
)
_DURING = re.compile(
    r"\b(?:for|within|after|about|around|takes?|took|lasts?|lasted|least|most|almost|nearly|than|roughly|"
    r"approximately|only|just|under|over) \Z",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:(?P<twice>twice)|once"
    r"(?= (?:(?:in )?an?|per|every|each) (?:calendar )?(?:hour|day|week|month|year)\b"
    r"| (?:dai|week|month|year)ly\b))\b",
    re.IGNORECASE,
)

_ITEM = re.compile(
    r"^[ \t*#(>-]*(?P<line>\d{1,3})(?=\*{0,2}[.):]\*{0,2}[ \t])"
    r"|(?<=[.:;!?] )(?P<running>\d{1,2})(?=[.)] )|(?<=\()(?P<bracket>\d{1,2})(?=\) )",
    re.MULTILINE,
)
_GLUED = re.compile(r"\w|[.,/:]\d")
_NO_COUNT = re.compile(r"\b(?:no|any|every|each|this|that|which|another|some) \Z", re.IGNORECASE)
_PRONOUN = re.compile(
    r"(?= (?:of|another|who|can|could|should|must|may|has|is|was)\b|['\u2019]|[.,;:?!)]|\Z)"
)
_COUNTED = re.compile(r"[ -]([a-z]{3,})(?: ([a-z]{3,}))?")
_LAST_SCALE = re.compile(r"\b(?:thousand|million|billion|trillion)\b", re.IGNORECASE)
_RANGE = re.compile(r" ?(?:to|or|and|x|\u00d7|[-\u2010-\u2015]) ?", re.IGNORECASE)
_STERLING = ("\u00a3", "sterling", "pence", "GBP")


def find_quantities(text: str, context: str = "") -> Iterator[Value]:
    """Quantities in the order of the text; those of a range ("20 to 60 mm") share the unit of its end.

    "Pounds" are money where `text` or `context` has signs of it, and a weight elsewhere.
    """
    sterling = any(sign in text or sign in context for sign in _STERLING)
    found = [*_numbers(text, sterling), *_parts(text, sterling), *_phrases(text)]
    finite = sorted(
        (one for one in found if math.isfinite(one.amount)), key=lambda one: (one.start, -one.end)
    )
    yield from _with_units_of_ranges(text, without_overlaps(finite), sterling)


def _numbers(text: str, sterling: bool) -> Iterator[Value]:
    items = {match.start(match.lastgroup or 0) for match in _ITEM.finditer(text)}
    for match in _NUMBER.finditer(text):
        if match.start() in items or _GLUED.match(text, match.end()) or _is_pronoun(text, match):
            continue
        amount = _amount(match)
        if match["nth"]:
            unit = "ordinal"
        elif match["money"]:
            unit = MONEY[match["money"].casefold()]
        else:
            amount, unit = in_base_unit(
                amount + _fraction(match["late"]), match["unit"] or "", sterling=sterling
            )
        yield Value(
            "quantity", *match.span(), match[0], amount, unit, "" if unit else _noun(text, match.end())
        )


def _amount(match: re.Match[str]) -> float:
    """The number before its unit; not a number where the words make none."""
    if match["words"]:
        number = _of_words(match["words"])
    else:
        number = float(re.sub(r"[^\d.]", "", match["digits"] or "0"))
    number += _fraction(match["fraction"]) + _fraction(match["part"]) + _fraction(match["half"])
    number *= SCALES[match["scale"].casefold()] if match["scale"] else 1.0
    return -number if match["minus"] else number


def _of_words(words: str) -> float:
    from text_to_num import text2num

    try:
        return float(text2num(re.sub(r"\Aan? ", "one ", words.casefold()), "en"))
    except ValueError:
        return math.nan


def _fraction(written: str | None) -> float:
    """What a sign, a ratio or words such as " and a half" add."""
    if not written:
        return 0.0
    plain = written.strip()
    if len(plain) == 1:
        return unicodedata.numeric(plain)
    if "/" in plain:
        above, below = plain.split("/")
        return int(above) / int(below)
    return _PARTS[re.split(r"[ -]", plain.casefold())[-1]]


def _parts(text: str, sterling: bool) -> Iterator[Value]:
    """Fractions of a unit ("half an hour"), of a scale ("half a million") or of anything else, in percent."""
    for match in _PART.finditer(text):
        before = text[max(match.start() - 12, 0) : match.start()]
        part, what, end = _fraction(match["part"]), (match["unit"] or "").casefold(), match.end()
        if what in SCALES:
            amount, unit = part * SCALES[what], ""
        elif what:
            amount, unit = in_base_unit(part, what, sterling=sterling)
        elif _NO_PART.search(before) or not (_tells_a_share(match) or _BEFORE_PART.search(before)):
            continue
        else:
            amount, unit = 100 * part, "%"
        yield Value("quantity", match.start(), end, text[match.start() : end], amount, unit)


def _tells_a_share(match: re.Match[str]) -> bool:
    """Unlike "a quarter", which may say how often, or "a third", which may be the third one."""
    return bool(match["of_all"]) or not re.match(r"a\b", match["part"], re.IGNORECASE)


def _phrases(text: str) -> Iterator[Value]:
    for match in _AN_HOUR.finditer(text):
        if match["dozen"]:
            yield Value("quantity", *match.span(), match[0], 12.0, "", _noun(text, match.end()))
        elif match["half"] or _DURING.search(text[max(match.start() - 15, 0) : match.start()]):
            # "An hour" alone says how often.
            amount, unit = in_base_unit(1 + _fraction(match["half"]), match["unit"], sterling=False)
            yield Value("quantity", *match.span(), match[0], amount, unit)
    for match in _TIMES.finditer(text):
        yield Value("quantity", *match.span(), match[0], 2.0 if match["twice"] else 1.0, "", "time")


def _is_pronoun(text: str, match: re.Match[str]) -> bool:
    """Whether a "one" counts nothing: "no one", "one of them", "one's"."""
    if match[0].lower() != "one":
        return False
    before = text[max(match.start() - 10, 0) : match.start()]
    return bool(
        _NO_COUNT.search(before) or (_PRONOUN.match(text, match.end()) and not before.endswith("to "))
    )


def _noun(text: str, end: int) -> str:
    """What follows a number, in the singular: "25 working days" counts "working day"."""
    match = _COUNTED.match(text, end)
    words = [word for word in match.groups() if word] if match else []
    if words and words[0] in stop_words():
        return ""
    return re.sub(r"(?<!s)s\Z", "", " ".join(word for word in words if word not in stop_words()))


def _with_scales_of_ranges(text: str, found: list[Value]) -> Iterator[Value]:
    for one, after in pairwise([*found, None]):
        if one is not None:
            factor = _scale_of_range(one, after) if after is not None and _joined(text, one, after) else 1.0
            yield replace(one, amount=one.amount * factor)


def _with_units_of_ranges(text: str, found: list[Value], sterling: bool) -> Iterator[Value]:
    for k, one in enumerate(_with_scales_of_ranges(text, found)):
        before, after = found[k - 1] if k else None, found[k + 1] if k + 1 < len(found) else None
        if after is not None and after.unit and not one.unit and _joined(text, one, after):
            unit = _NUMBER.match(after.text)
            amount, name = in_base_unit(one.amount, (unit and unit["unit"]) or "", sterling=sterling)
            yield replace(one, amount=amount, unit=name or after.unit, noun="")
        elif before is not None and _has_sign(before) and not one.unit and _joined(text, before, one):
            yield replace(one, unit=before.unit, noun="")
        else:
            yield one


def _scale_of_range(one: Value, after: Value) -> float:
    """A million in "3 to 4 million", 1 in "900 to 1 million"."""
    scale = _LAST_SCALE.search(after.text)
    if scale is None or _LAST_SCALE.search(one.text):
        return 1.0
    factor = SCALES[scale[0].casefold()]
    return factor if one.amount * factor < after.amount else 1.0


def _joined(text: str, one: Value, other: Value) -> bool:
    """Whether only "to", a dash or the like stands between; an "and" needs "between" before."""
    if other.start - one.end > 5 or not (match := _RANGE.fullmatch(text, one.end, other.start)):
        return False
    return match[0].strip().lower() != "and" or text[max(one.start - 8, 0) : one.start].lower() == "between "


def _has_sign(value: Value) -> bool:
    """Whether a currency stands before its number."""
    return value.unit in MONEY.values() and not value.text[:1].isalnum()
