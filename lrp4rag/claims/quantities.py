"""Quantities: numbers in digits and words, with money, percent, units of measure, or the noun that they
count."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from lrp4rag.claims.bounds import qualified
from lrp4rag.claims.surroundings import NOTHING, Surroundings
from lrp4rag.claims.units import CENTS, CURRENCIES, MONEY, PERCENT, POINTS, POUNDS, UNITS, Purse, in_base_unit
from lrp4rag.claims.value import Precision, Value, without_overlaps
from lrp4rag.claims.words import STOP_WORDS

SCALES = {
    **{"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12},
    **{"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9},
}

FRACTION = 0.005
"""Tolerance of a half, a third and a quarter, in their unit: 33 % is a third."""


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

_DIGITS = (
    r"\d{1,3}(?:[,\u00a0\u2009\u202f '\u2019]\d{3})+(?:\.\d+)?(?![\d,])"
    r"|\d{1,3}(?:\.\d{3})+,\d\d?(?!\d)|\d+(?:\.\d+)?"  # 1.234,56
)
_MINUS = "-\u2010\u2011\u2012\u2013\u2212\uff0d"
_VULGAR = r"[\u00bc-\u00be\u2150-\u215e]"
_RATIO = r"[1-7]/[2-8](?![\d/])"
_HALF = r"[ -]and[ -](?:(?:a|one)[ -](?:half|quarter)|three[ -]quarters)\b(?! of\b)"
_GAP = r"[ \u00a0\u2009\u202f\u2011-]"
_WHOLE = rf"(?:{_GAP}(?:calendar|consecutive|full|whole|more|extra|additional|US|UK|imperial) |{_GAP})?"
_WRITTEN = (*UNITS, *MONEY, *CENTS, *PERCENT, *POINTS, *POUNDS)
_UNIT_WORDS = ["%", "\uff05", *(word for word in _WRITTEN if re.fullmatch("[a-z. ]{3,}", word))]
_UNIT_SIGNS = [word for word in (*UNITS, "\u20ac", "\u20b9", "\u00a2") if word not in _UNIT_WORDS]
_RAISED = "\u2070\u00b9\u2074-\u2079"
_P = r"(?<=\d)(?<!\d{3})p(?!\.? ?m\b)"  # pence, but not 720p or 5p.m.
UNIT = rf"(?:(?:{_any_of(_UNIT_SIGNS)}|{_P})|(?i:{_any_of(_UNIT_WORDS)}))(?![^\W{_RAISED}]|[\u00b2\u00b3])"
"""A regular expression for what may stand behind digits."""
_WORD_UNIT = rf"(?i:{_any_of(_UNIT_WORDS)})(?![^\W{_RAISED}])"  # "one m" is no metre
_COMMA = rf"\d+,\d\d?(?={_GAP}?{UNIT})"  # 104,5 m
_CODES = "(?:USD|EUR|GBP|CHF|JPY|INR|AUD|CAD|CNY)"
_SCALE = (
    r"(?P<scale>(?i:dozen|hundred|thousand|million|billion|trillion)\b|bn\b|[kK](?![\w/])"
    r"|(?(money)[mMbB](?!\w)|m(?= ?[\u20ac$\u00a3])))"
)
_NUMBER = re.compile(
    rf"(?<![\w.,/])(?P<minus>[{_MINUS}](?=[\d$\u20ac\u00a3\u00a5])|(?i:minus|negative) )?"
    rf"(?:(?P<money>[UAC]S?\$|[$\u20ac\u00a3\u00a5\u20b9]|{_CODES}(?= ?\d)) ?(?P<debit>[{_MINUS}](?=\d))?)?"
    rf"(?:(?P<fraction>{_VULGAR}|{_RATIO})|(?P<digits>{_COMMA}|{_DIGITS})(?P<part> ?{_VULGAR}| {_RATIO})?"
    r"(?P<nth>st|nd|rd|th)?"
    rf"|(?P<words>\b(?i:{_WORDS})\b))"
    rf"(?P<half>{_HALF})?(?:{_GAP}?{_SCALE})?"
    rf"(?:{_WHOLE}(?P<unit>(?(words){_WORD_UNIT}|{UNIT})))?(?P<late>{_HALF})?"
)

# Phrases: "half an hour", "a quarter of the staff", "an hour and a quarter", "about an hour", "twice".
_OF_WHAT = rf"(?P<unit>million|billion|dozen|{_any_of(_UNIT_WORDS)})\b"
_PART = re.compile(
    r"\b(?P<part>three[ -]quarters|two[ -]thirds|(?:one|a)[ -](?:half|third|quarter)|half"
    r"|(?:one|an?|two|three|four|five|seven|nine)[ -](?:fif|six|eigh|ten)ths?(?= of\b))"
    rf"(?:(?: of)?(?: an?| one)?[ -]{_OF_WHAT}|(?P<of_all> of\b)|(?![-\w]| past\b))",
    re.IGNORECASE,
)
_PARTS = {"half": 1 / 2, "quarter": 1 / 4, "quarters": 3 / 4, "third": 1 / 3, "thirds": 2 / 3}
_BELOW = {"fif": 5, "six": 6, "eigh": 8, "ten": 10}
_OUT_OF = re.compile(
    rf"\b(?P<above>{ONES}|{TEENS}|\d{{1,3}}) (?:in|out of)(?: every)? (?P<below>{ONES}|{TEENS}|\d{{1,4}})\b"
    r"(?! ?(?:%|years|days|months|weeks|hours|minutes))",
    re.IGNORECASE,
)
_BEFORE_PART = re.compile(
    r"\b(?:by|about|around|nearly|almost|than|over|under|roughly|to|from) \Z", re.IGNORECASE
)
_NO_PART = re.compile(r"\b(?:first|second|other|latter|better) \Z", re.IGNORECASE)
_AN_HOUR = re.compile(
    r"\b(?:an?|every) (?:(?P<dozen>dozen)|(?P<unit>hour|day|week|fortnight|month|year|decade)"
    rf"(?P<half>{_HALF})?)\b",
    re.IGNORECASE,
)
_DURING = re.compile(
    r"\b(?:for|within|after|about|around|takes?|took|lasts?|lasted|least|most|almost|nearly|than|roughly|"
    r"approximately|only|just|under|over) \Z",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:(?P<twice>twice)|once(?= (?:(?:in )?an?|per|every|each) (?:calendar )?(?:hour|day|week|month"
    r"|year)\b| (?:dai|week|month|year)ly\b))\b",
    re.IGNORECASE,
)

_ITEM = re.compile(
    r"^[ \t*#(>-]*(?P<line>\d{1,3})(?=\*{0,2}[.):]\*{0,2}[ \t])"
    r"|(?<=[.:;!?] )(?P<running>\d{1,2})(?=[.)] )|(?<=\()(?P<bracket>\d{1,2})(?=\) )",
    re.MULTILINE,
)
_GLUED = re.compile(rf"[^\W{_RAISED}]|[.,/:]\d")
_NO_COUNT = re.compile(r"\b(?:no|any|every|each|this|that|which|another|some) \Z", re.IGNORECASE)
_PRONOUN = re.compile(
    r"(?= (?:of|another|who|can|could|should|must|may|has|is|was)\b|['\u2019]|[.,;:?!)]|\Z)"
)
_COUNTED = re.compile(r"[ -]([a-z]{3,})(?: ([a-z]{3,}))?")
_LAST_SCALE = re.compile(r"\b(?:thousand|million|billion|trillion)\b", re.IGNORECASE)
_RANGE = re.compile(r" ?(?:to|or|and|x|\u00d7|[-\u2010-\u2015]) ?", re.IGNORECASE)

# "1 hour 30 minutes", "2 m 10 cm", "3 years and 6 months", 5'11", 2:24:07.
_JOINT = re.compile(r",? (?:and )?|,", re.IGNORECASE)
_FEET = re.compile(
    r"(?<![\w.,])(?P<feet>\d{1,2})(?:['\u2032\u2019] ?| ?(?:ft|feet|foot)\.? )(?P<inches>1[01]|\d)"
    r"(?:[\"\u2033\u201d]| ?in\.?(?!\w)| inch(?:es)?\b)"
)
_TIMED = re.compile(r"(?<![\w:.,])(?P<hours>\d):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)(?![\d:])")
_CLOCKED = re.compile(r"(?<![\w.,])(?P<hours>\d{1,2}) ?h ?(?P<minutes>[0-5]\d)(?: ?m(?:in)?)?(?!\w)")

# Marks that cite, and no numbers: [^1], \[2\], [1, p. 4], 【1†source】, {1}, (7), (1, 2), (ref. 2), **1**.
_CITED = r"(?:sources?|refs?|docs?|documents?|passages?|contexts?|pages?|see|no|pp?|s)?[:.#^ ]*"
_LISTED = r"\d{1,3}(?: ?[,;\u2013-] ?(?:pp?\. ?)?\d{1,4})"
_MARK = re.compile(
    rf"\[{_CITED}{_LISTED}{{0,9}}\\?\]|\{{\d{{1,2}}\}}|<sup>\[?{_LISTED}{{0,9}}\]?</sup>|\^\d{{1,2}}(?!\w)"
    r"|\u3010[^\u3010\u3011\n]{0,80}\u3011|(?<=[^\W\d])\s?\((?P<bracket>\d{1,2})\)"
    rf"|(?<=[\w.]) ?\((?:{_LISTED}{{1,9}}|(?=[a-z]){_CITED}{_LISTED}{{0,9}})\)"
    r"|(?<=[\w.,!?]) ?\*\*(?P<bold>\d{1,2})\*\*(?=\s*(?:[.,;:!?]|$))"
    r"|(?<=\d{4}[\u2013-])\d\d(?!\d)",  # 1914-18
    re.MULTILINE | re.IGNORECASE,
)


def find_quantities(text: str, context: Surroundings = NOTHING) -> Iterator[Value]:
    """Find quantities in the order of the text; those of a range ("20 to 60 mm") share the unit of its end.

    "Pounds" are money where `text` or `context` has signs of money, and a weight elsewhere.
    """
    purse = Purse.of(text, *context.texts, priced=context.prices_in_pounds)
    quantities = [*_compounds(text), *_numbers(text, purse), *_fractions(text, purse), *_phrases(text, purse)]
    finite = sorted(
        (quantity for quantity in quantities if math.isfinite(quantity.amount)),
        key=lambda quantity: (quantity.start, -quantity.end),
    )
    joined = _joined_units(text, list(_with_units_of_ranges(text, without_overlaps(finite), purse)))
    for quantity in _with_bounds_of_ranges(text, joined):
        yield qualified(text, quantity)


def _numbers(text: str, purse: Purse) -> Iterator[Value]:
    items = {match.start(match.lastgroup or 0) for match in _ITEM.finditer(text)}
    items |= {
        position for match in _MARK.finditer(text) if _cites(text, match) for position in range(*match.span())
    }
    for match in _NUMBER.finditer(text):
        if match.start() in items or _GLUED.match(text, match.end()) or _is_pronoun(text, match):
            continue
        amount = value = _amount(match)
        step, factor = _step(match), 1.0
        zeros = _zeros(amount, step)
        if match["nth"]:
            unit = "ordinal"
        elif match["money"]:
            unit = MONEY[match["money"].casefold()]
        else:
            amount, unit, factor = in_base_unit(amount + _fraction(match["late"]), match["unit"] or "", purse)
        precision = Precision(step * factor, zeros * factor, _digits(match, value), factor)
        noun = "" if unit else _noun(text, match.end())
        yield Value("quantity", *match.span(), match[0], amount, unit, noun, precision=precision)


def _cites(text: str, match: re.Match[str]) -> bool:
    """Say whether a number in brackets, or in bold, is a mark that cites: "five (5)" repeats a word."""
    if match["bracket"] is None:
        return True
    word = re.search(r"[^\W\d]+\Z", text[max(match.start() - 20, 0) : match.start()].rstrip())
    return not (word and re.fullmatch(rf"(?:{_BELOW_100}|hundred|thousand|million)", word[0], re.IGNORECASE))


def _step(match: re.Match[str]) -> float:
    """Return half of the last written place, in the unit of the number; 1 % of a fraction."""
    if match["fraction"] or match["part"] or match["half"]:
        return FRACTION
    scale = (match["scale"] or "").casefold()
    decimals = _plain_digits(match["digits"] or "").partition(".")[2]
    return 0.5 * 10.0 ** -len(decimals) * (1.0 if scale in ("", "dozen") else SCALES[scale])


def _zeros(amount: float, step: float) -> float:
    """Return half of the last non-zero place of a whole number."""
    if not math.isfinite(amount) or amount != round(amount) or abs(amount) < 10 or step < 0.5:
        return step
    digits = f"{abs(round(amount))}"
    return max(step, 0.5 * 10.0 ** (len(digits) - len(digits.rstrip("0"))))


def _digits(match: re.Match[str], amount: float) -> int:
    """Return the number of significant digits."""
    written = _plain_digits(match["digits"] or "") or f"{amount:.0f}"
    return max(len(written.replace(".", "").strip("-0")), 1)


def _plain_digits(written: str) -> str:
    """Return the digits with a point before the decimals and no other signs."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d\d?|\d+,\d\d?", written):
        written = written.replace(".", "").replace(",", ".")
    return re.sub(r"[^\d.]", "", written)


def _amount(match: re.Match[str]) -> float:
    """Return the number before its unit; NaN if the words are not a number."""
    words, digits = match["words"], match["digits"]
    number = _of_words(words) if words else float(_plain_digits(digits or "0"))
    number += _fraction(match["fraction"]) + _fraction(match["part"]) + _fraction(match["half"])
    number *= SCALES[match["scale"].casefold()] if match["scale"] else 1.0
    return -number if match["minus"] or match["debit"] else number


def _of_words(words: str) -> float:
    from text_to_num import text2num

    try:
        return float(text2num(re.sub(r"\Aan? ", "one ", words.casefold()), "en"))
    except ValueError:
        return math.nan


def _of_words_or_digits(written: str) -> float:
    return float(written) if written.isdigit() else _of_words(written)


def _fraction(written: str | None) -> float:
    """Return the amount that a sign, a ratio or words such as " and a half" add."""
    if not written:
        return 0.0
    plain = written.strip()
    if len(plain) == 1:
        return unicodedata.numeric(plain)
    if "/" in plain:
        above, below = plain.split("/")
        return int(above) / int(below)
    words = re.split(r"[ -]", plain.casefold())
    if (parts := _BELOW.get(words[-1].rstrip("s").removesuffix("th"))) is not None:
        return (1 if words[0] in ("a", "an") else ONES.split("|").index(words[0])) / parts
    return _PARTS[words[-1]]


def _fractions(text: str, purse: Purse) -> Iterator[Value]:
    """Find fractions of a unit ("half an hour"), of a scale ("half a million") or of anything else, in
    percent."""
    for match in _OUT_OF.finditer(text):
        above, below = (_of_words_or_digits(match[group]) for group in ("above", "below"))
        if 0 < above < below:
            precision = Precision.around(FRACTION, 100.0)
            yield Value("quantity", *match.span(), match[0], 100 * above / below, "%", precision=precision)
    for match in _PART.finditer(text):
        before = text[max(match.start() - 12, 0) : match.start()]
        fraction, written = _fraction(match["part"]), (match["unit"] or "").casefold()
        if written in SCALES:
            amount, unit, factor = fraction * SCALES[written], "", SCALES[written]
        elif written:
            amount, unit, factor = in_base_unit(fraction, written, purse)
        elif _NO_PART.search(before) or not (_tells_a_share(match) or _BEFORE_PART.search(before)):
            continue
        else:
            amount, unit, factor = 100 * fraction, "%", 100.0
        precision = Precision.around(2 * FRACTION, factor)
        yield Value("quantity", *match.span(), match[0], amount, unit, precision=precision)


def _tells_a_share(match: re.Match[str]) -> bool:
    """Say whether a fraction is a proportion: "a quarter" may be a frequency, and "a third" an ordinal."""
    return bool(match["of_all"]) or not re.match(r"a\b", match["part"], re.IGNORECASE)


def _phrases(text: str, purse: Purse) -> Iterator[Value]:
    for match in _AN_HOUR.finditer(text):
        if match["dozen"]:
            yield Value("quantity", *match.span(), match[0], 12.0, "", _noun(text, match.end()))
        elif match["half"] or _DURING.search(text[max(match.start() - 15, 0) : match.start()]):
            # "An hour" alone says how often.
            amount, unit, factor = in_base_unit(1 + _fraction(match["half"]), match["unit"], purse)
            precision = Precision.around(FRACTION, factor)
            yield Value("quantity", *match.span(), match[0], amount, unit, precision=precision)
    for match in _TIMES.finditer(text):
        yield Value("quantity", *match.span(), match[0], 2.0 if match["twice"] else 1.0, "", "time")


def _is_pronoun(text: str, match: re.Match[str]) -> bool:
    """Say whether a "one" counts nothing: "no one", "one of them", "one's"."""
    if match[0].lower() != "one":
        return False
    before = text[max(match.start() - 10, 0) : match.start()]
    return bool(
        _NO_COUNT.search(before) or (_PRONOUN.match(text, match.end()) and not before.endswith("to "))
    )


def _noun(text: str, end: int) -> str:
    """Return the noun after a number, in the singular: "25 working days" counts "working day"."""
    match = _COUNTED.match(text, end)
    words = [word for word in match.groups() if word] if match else []
    if words and words[0] in STOP_WORDS:
        return ""
    return re.sub(r"(?<!s)s\Z", "", " ".join(word for word in words if word not in STOP_WORDS))


def _with_scales_of_ranges(text: str, quantities: list[Value]) -> Iterator[Value]:
    for quantity, after in pairwise([*quantities, None]):
        if quantity is not None:
            is_range = after is not None and _joined(text, quantity, after)
            factor = _scale_of_range(quantity, after) if after is not None and is_range else 1.0
            precision = quantity.precision.scaled(factor, quantity.precision.factor)
            yield replace(quantity, amount=quantity.amount * factor, precision=precision)


def _with_bounds_of_ranges(text: str, quantities: list[Value]) -> list[Value]:
    """Return the quantities with the ends of "10 to 20 days" as half lines: 15 days are within."""
    ends = list(quantities)
    for k, (first, second) in enumerate(pairwise(quantities)):
        joint = text[first.end : second.start].strip().lower()
        if (
            joint not in ("or", "x", "\u00d7")
            and first.amount < second.amount
            and _joined(text, first, second)
        ):
            ends[k] = replace(ends[k], precision=replace(ends[k].precision, bound="least"))
            ends[k + 1] = replace(second, precision=replace(second.precision, bound="most"))
    return ends


def _with_units_of_ranges(text: str, quantities: list[Value], purse: Purse) -> Iterator[Value]:
    for k, quantity in enumerate(_with_scales_of_ranges(text, quantities)):
        before = quantities[k - 1] if k else None
        after = quantities[k + 1] if k + 1 < len(quantities) else None
        if after is not None and after.unit and not quantity.unit and _joined(text, quantity, after):
            unit = _NUMBER.match(after.text)
            amount, name, factor = in_base_unit(quantity.amount, (unit and unit["unit"]) or "", purse)
            precision = quantity.precision.scaled(factor, factor)
            yield replace(quantity, amount=amount, unit=name or after.unit, noun="", precision=precision)
        elif (
            before is not None and _has_sign(before) and not quantity.unit and _joined(text, before, quantity)
        ):
            yield replace(quantity, unit=before.unit, noun="")
        else:
            yield quantity


def _scale_of_range(quantity: Value, after: Value) -> float:
    """Return the scale of a range's first number: a million in "3 to 4 million", 1 in "900 to 1 million"."""
    scale = _LAST_SCALE.search(after.text)
    if scale is None or _LAST_SCALE.search(quantity.text):
        return 1.0
    factor = SCALES[scale[0].casefold()]
    return factor if quantity.amount * factor < after.amount else 1.0


def _joined(text: str, first: Value, second: Value) -> bool:
    """Say whether only "to", a dash or the like stands between; an "and" needs "between" before."""
    if second.start - first.end > 5 or not (match := _RANGE.fullmatch(text, first.end, second.start)):
        return False
    is_between = text[max(first.start - 8, 0) : first.start].lower() == "between "
    return is_between or match[0].strip().lower() != "and"


def _has_sign(value: Value) -> bool:
    """Say whether a currency stands before its number."""
    return value.unit in MONEY.values() and not value.text[:1].isalnum()


def _compounds(text: str) -> Iterator[Value]:
    """Find heights in feet and inches, and durations such as "1h30" and "2:24:07"."""
    for match in _FEET.finditer(text):
        inch = 0.0254
        amount = (12 * int(match["feet"]) + int(match["inches"])) * inch
        precision = Precision(inch / 2, inch / 2, 2, inch)
        yield Value("quantity", *match.span(), match[0], amount, "meter", precision=precision)
    for match in _CLOCKED.finditer(text):
        amount = 3600.0 * int(match["hours"]) + 60.0 * int(match["minutes"])
        yield Value("quantity", *match.span(), match[0], amount, "second", precision=Precision(30, 30, 3, 60))
    for match in _TIMED.finditer(text):
        amount = 3600.0 * int(match["hours"]) + 60.0 * int(match["minutes"]) + int(match["seconds"])
        yield Value("quantity", *match.span(), match[0], amount, "second", precision=Precision(0.5, 0.5, 5))


def _joined_units(text: str, quantities: list[Value]) -> list[Value]:
    """Join "1 hour 30 minutes" into one quantity: a smaller unit follows a larger one."""
    joined: list[Value] = []
    for quantity in quantities:
        before = joined[-1] if joined else None
        if before is not None and _is_part(text, before, quantity):
            digits = before.precision.digits + quantity.precision.digits
            joined[-1] = replace(
                before,
                end=quantity.end,
                text=text[before.start : quantity.end],
                amount=before.amount + (quantity.amount if quantity.unit else quantity.amount / 100),
                precision=replace(quantity.precision, digits=digits),
            )
        else:
            joined.append(quantity)
    return joined


def _is_part(text: str, first: Value, second: Value) -> bool:
    """Say whether a second quantity is less than one unit of the first, and joined to it."""
    if first.unit in CURRENCIES and not second.unit:  # "twelve pounds fifty"
        after = re.match(r"\s*(?:[.,;:!?)]|$|(?:a|an|per|each|for|in)\b)", text[second.end : second.end + 8])
        is_integer = first.amount.is_integer() and second.precision.step == 0.5
        return (
            text[first.end : second.start] == " " and is_integer and 10 <= second.amount < 100 and bool(after)
        )
    if (
        first.unit != second.unit
        or first.unit in ("", "%", "points", "ordinal", "kelvin")
        or second.amount <= 0
    ):
        return False
    if second.end - first.start > 60 or not _JOINT.fullmatch(text, first.end, second.start):
        return False
    unit, part_unit = first.precision.factor, second.precision.factor
    return part_unit < unit and second.amount < unit and not text[first.start : first.end].startswith("half")
