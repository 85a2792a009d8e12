"""Dates and times of the day, and how often something happens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrp4rag.claims.numerals import ORDINALS, number_of_ordinal, number_of_roman
from lrp4rag.claims.value import WEEKEND, WORKDAYS, Value, without_overlaps
from lrp4rag.claims.written import SMALL_NUMBERS

_MONTHS = "january february march april may june july august september october november december"
MONTHS = {form: k for k, name in enumerate(_MONTHS.split(), 1) for form in (name, name[:3])}
"""The number of a month by its name or abbreviation, in small letters."""
MONTHS["sept"] = 9

_LONG = "|".join(name.capitalize() for name in _MONTHS.split() if name != "may")
_MONTH = rf"(?P<month>{_LONG}|May|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9])"
_MONTH_NUMBER = r"(?P<month>1[0-2]|0?[1-9])"
_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d)"
_NTH = r"(?:st|nd|rd|th)?"
_BEFORE = "in by on to of from since until till after before during early late mid last next"
_AFTER_PREPOSITION = "(?:" + "|".join(rf"(?<=\b{word} )" for word in _BEFORE.split()) + ")"
_COUNTS = r" ?(?:[k\u00b0%\u20ac]|m\b|m[\u00b2\u00b3gl]|kg|g\b|l\b|ft\b|[kM]?W|V\b|rpm|people\b|US\b)"
_IN_THE = "".join(rf"(?<!\b{word} \d{{4}})" for word in ("in", "In", "the", "The"))
_NO_YEAR = rf"(?:[\d,.%]\d|{_COUNTS}|{_IN_THE} [a-z]{{1,20}}s\b)"  # "1800 calories", but "in 1800 farmers"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])\b",
        rf"(?<![\d.]){_DAY}\. ?{_MONTH_NUMBER}\. ?{_YEAR}\b",
        # "On 3.9. we", but not "costs 10.5. We"
        rf"(?<![\d.,]){_AFTER_PREPOSITION}{_DAY}\. ?{_MONTH_NUMBER}\.(?!\d)",
        rf"(?<![\d.,]){_DAY}\. ?{_MONTH_NUMBER}\.(?=[,;)]| [a-z])",
        rf"\A{_DAY}\.{_MONTH_NUMBER}\.(?!\d)",
        rf"(?<![\d/])(?P<first>\d\d?)/(?P<second>\d\d?)/{_YEAR}\b",
        rf"\b{_DAY}{_NTH} (?:of )?{_MONTH}(?:,? {_YEAR})?\b",
        rf"\b{_MONTH} {_DAY}{_NTH}\b(?:,? {_YEAR})?(?![\d,.]\d)",
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
        rf"\b{_YEAR}s\b",
        rf"(?<![$\u20ac\u00a3\d.,])(?<!(?<!\d{{4}})-)\b{_YEAR}(?!{_NO_YEAR})\b",
        rf"\b(?P<month>{_LONG})\b",
        rf"{_AFTER_PREPOSITION}(?P<month>May)\b|(?<=\bIn )(?P<may>May)\b(?! (?:I|we|you|they)\b)",
    )
)
_HOLIDAYS = {
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "valentine's day": (2, 14),
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "boxing day": (12, 26),
}
_HOLIDAY = re.compile(rf"\b(?:{'|'.join(_HOLIDAYS)})\b".replace("'", "['\u2019]"), re.IGNORECASE)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKDAY = re.compile(rf"\b(?P<day>{'|'.join(WEEKDAYS)})s?\b")
_PART_OF_WEEK = re.compile(r"\bweek(?:(?P<end>ends?)|days?)\b", re.IGNORECASE)
_SHORT_DAY = "(?:Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)"
_SHORT_WEEKDAYS = re.compile(
    rf"\b{_SHORT_DAY}\.?(?: ?[-\u2010-\u2015,/&] ?{_SHORT_DAY}\b\.?| (?:to|and) {_SHORT_DAY}\b\.?| (?=\d))+"
)
_DECADES = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70,
            "eighties": 80, "nineties": 90}  # fmt: skip
_DECADE = re.compile(
    rf"(?<!\w)['\u2019](?P<tens>\d)0s\b"
    rf"|(?<=\bthe )(?:(?:early|mid|late)[- ])?(?P<word>{'|'.join(_DECADES)})\b",
    re.IGNORECASE,
)
_CENTURY = re.compile(
    rf"\b(?:(?P<number>\d\d?)(?:st|nd|rd|th)|(?-i:(?P<roman>[IVX]+))(?:th)?|(?P<word>{'|'.join(ORDINALS)}))"
    r"[ -]century\b(?P<bc>,? B\.?C)?",
    re.IGNORECASE,
)
_QUARTER = re.compile(
    r"\b(?:(?:fiscal )?Q(?P<number>[1-4])|(?P<word>first|second|third|fourth) (?:fiscal )?quarter)\b"
    r"(?!-?finals?)"
)
_HOURS = SMALL_NUMBERS[1:13]
_TIME = re.compile(
    r"(?<![\d:.,])\b(?:(?P<hour>[01]?\d|2[0-4])(?:[:.](?P<minute>[0-5]\d))? ?"
    r"(?:(?P<half>[ap])(?:\.m\.|m\b)|(?P<clock>o['\u2019]clock)\b)"
    r"|(?P<hour2>[01]?\d|2[0-4]):(?P<minute2>[0-5]\d)(?![\d:]\d|\d)"
    r"|(?:12 )?(?P<word>noon|midday|midnight)\b"
    rf"|(?P<past>half|quarter|twenty|ten|five) (?P<way>past|to) (?P<spelt>{'|'.join(_HOURS)}|\d\d?)\b"
    rf"|(?P<words>{'|'.join(_HOURS)}) (?:(?P<clock2>o['\u2019]clock)|(?P<half2>[ap])\.?m\b\.?)"
    rf"|(?P<hour3>{'|'.join(_HOURS)}|1?\d)(?= (?:in the (?:morning|afternoon|evening)|at night)\b))"
    r"(?: (?:in the |at |this )(?P<part>morning|afternoon|evening|night)\b)?",
    re.IGNORECASE,
)
_DOTTED = re.compile(
    r"(?<![\w$\u20ac\u00a3.,])(?P<hour>[01]?\d|2[0-3])\.(?P<minute>[0-5][05])"
    r"(?!\d|[.,]\d| ?[%\u20ac$\u00a3]| (?:euros?|dollars?|pounds?|per|percent|times|hours|points?)\b)"
)
"""What may be a time written with a point: "until 20.30"."""
_TOWARDS = re.compile(
    r"\b(?:(?P<of_time>before|after|until|till)|at|by|from|between|around) \Z", re.IGNORECASE
)
_RANGE = re.compile(r" ?(?:[-\u2010-\u2015]|to|and|until|till) ?")
_OF_HOURS = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)}|{_SHORT_DAY}|daily|(?:every|each) day|open(?:s|ed|ing)?|clos(?:es?|ed|ing)"
    r"|hours|morning|noon|afternoon|evening|night|today|tomorrow|arriv\w+|depart\w*|leaves?)\b",
    re.IGNORECASE,
)
"""Words beside which a number with a point is a time."""
_BESIDE = 80
"""Characters on both sides of a number in which these are looked for."""
_WAYS = {"half": 30, "quarter": 15, "twenty": 20, "ten": 10, "five": 5}
_PERIOD = re.compile(
    r"\b(?:(?:per|each|every|a|an) (?:calendar |working |business )?"
    r"(?P<unit>second|minute|hour|day|night|week|fortnight|month|quarter(?! of\b)|year|season|decade)"
    r"|(?P<word>hourly|daily|weekly|fortnightly|monthly|quarterly|yearly|annually|annual))\b",
    re.IGNORECASE,
)
_OFTEN = {"daily": "day", "annually": "year", "annual": "year"}


def find_dates(text: str) -> Iterator[Value]:
    """Find dates, of which a day, a month or a year may be missing; weekdays are dates with a fourth part."""
    yield from without_overlaps(_dates(text))


def find_times(text: str) -> Iterator[Value]:
    """Find times of the day, as minutes after midnight; 12 follows if the text leaves the half of the day
    open."""
    for match in _TIME.finditer(text):
        yield Value("time", *match.span(), match[0], key=_from(match, text) or _minutes(match))
    yield from _dotted_times(text)


def _from(match: re.Match[str], text: str) -> tuple[int, ...] | None:
    """Return the minutes of a time whose half of the day only the other end of its range tells: "6:00 to 6:50
    pm"; None for others."""
    range_ = _RANGE.match(text, match.end()) if match["hour2"] else None
    until = _TIME.match(text, range_.end()) if range_ else None
    if until is None or not (until["half"] or until["half2"]):
        return None
    (start, *_), (end, *_) = _minutes(match), _minutes(until)
    later = start + 720
    return (later,) if 60 <= start < 720 and later < end else None


def _dotted_times(text: str) -> Iterator[Value]:
    """Find times with a point: both of "10.00 to 17.30", and that of "until 20.30", beside words that tell
    of hours."""
    last: re.Match[str] | None = None
    for match in _DOTTED.finditer(text):
        is_second = last is not None and _RANGE.fullmatch(text, last.end(), match.start())
        after = _RANGE.match(text, match.end())
        is_first = after is not None and _DOTTED.match(text, after.end())
        towards = _TOWARDS.search(text, max(match.start() - 10, 0), match.start())
        hour, minute = int(match["hour"]), int(match["minute"])
        is_evident = towards is not None and towards["of_time"] and hour > 12
        beside = text[max(match.start() - _BESIDE, 0) : match.end() + _BESIDE]
        if is_evident or ((is_first or is_second or towards) and _OF_HOURS.search(beside)):
            key = (60 * hour + minute,) if hour > 12 else (60 * hour + minute, 12)
            yield Value("time", *match.span(), match[0], key=key)
        last = match


def _minutes(match: re.Match[str]) -> tuple[int, ...]:
    if match["word"]:
        return (0 if match["word"].lower() == "midnight" else 720,)
    written = (match["hour"] or match["hour2"] or match["hour3"] or match["words"] or match["spelt"]).lower()
    hour = int(written) if written.isdigit() else _HOURS.index(written) + 1
    minute = int(match["minute"] or match["minute2"] or 0)
    if match["past"]:
        minute = _WAYS[match["past"].lower()] * (1 if match["way"].lower() == "past" else -1)
    half, day_part = (match["half"] or match["half2"] or "").lower(), (match["part"] or "").lower()
    if day_part in ("afternoon", "evening") or (day_part == "night" and hour % 12 >= 6):
        half = half or "p"
    elif day_part in ("morning", "night"):
        half = half or "a"
    is_certain = bool(half) or hour > 12 or bool(match["hour2"])
    if half:
        hour = hour % 12 + 12 * (half == "p")
    minutes = (60 * hour + minute) % (24 * 60)
    return (minutes,) if is_certain else (minutes, 12)


def find_periods(text: str) -> Iterator[Value]:
    """Find frequencies: "a month", "per calendar year", "weekly"."""
    for match in _PERIOD.finditer(text):
        word = (match["word"] or "").lower()
        unit = (match["unit"] or _OFTEN.get(word) or word.removesuffix("ly")).lower()
        yield Value("period", *match.span(), match[0], key=(unit,))


def _dates(text: str) -> Iterator[Value]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            key = _key(match.groupdict())
            if any(number is not None for number in key):
                yield Value("date", *match.span(), match[0], unit="decade" * match[0].endswith("0s"), key=key)
    yield from _spans_of_years(text)
    for match in _HOLIDAY.finditer(text):
        month, day = _HOLIDAYS[match[0].casefold().replace("\u2019", "'")]
        yield Value("date", *match.span(), match[0], key=(None, month, day, None))
    for match in _WEEKDAY.finditer(text):
        yield _weekday(text, *match.span())
    for match in _PART_OF_WEEK.finditer(text):
        days = WEEKEND if match["end"] else WORKDAYS
        yield Value("date", *match.span(), match[0], unit="weekday", key=(None, None, None, days))
    for several in _SHORT_WEEKDAYS.finditer(text):
        for match in re.finditer(_SHORT_DAY, several[0]):
            yield _weekday(text, several.start() + match.start(), several.start() + match.end())


def _spans_of_years(text: str) -> Iterator[Value]:
    """Find decades ("the nineties", "the '90s") and centuries by their first year, and quarters of a year."""
    for match in _DECADE.finditer(text):
        tens = _DECADES[match["word"].lower()] if match["word"] else int(match["tens"]) * 10
        year = (1900 if tens > 20 else 2000) + tens
        yield Value("date", *match.span(), match[0], unit="decade", key=(year, None, None, None))
    for match in _CENTURY.finditer(text):
        number = number_of_roman(match["roman"] or "") or int(
            match["number"] or number_of_ordinal(match["word"] or "") or 1
        )
        year = -100 * number if match["bc"] else 100 * (number - 1)
        yield Value("date", *match.span(), match[0], unit="century", key=(year, None, None, None))
    for match in _QUARTER.finditer(text):
        number = int(match["number"] or number_of_ordinal(match["word"]) or 0)
        yield Value("date", *match.span(), match[0], unit="quarter", key=(None, number, None, None))


def _weekday(text: str, start: int, end: int) -> Value:
    day = next(k for k, name in enumerate(WEEKDAYS) if text.startswith(name[:3], start))
    return Value("date", start, end, text[start:end], unit="weekday", key=(None, None, None, day))


def _key(groups: dict[str, str | None]) -> tuple[int | None, int | None, int | None, None]:
    year, month, day = (groups.get(name) for name in ("year", "month", "day"))
    if groups.get("first"):
        day, month = _in_order(groups["first"] or "", groups["second"] or "")
    return (int(year) if year else None, _month(month or groups.get("may")), int(day) if day else None, None)


def _month(written: str | None) -> int | None:
    if not written:
        return None
    return int(written) if written.isdigit() else MONTHS[written.lower().rstrip(".")]


def _in_order(first: str, second: str) -> tuple[str | None, str | None]:
    """Return the day and month of "13/9/2021" or "9/13/2021"; neither where both could be meant."""
    if 12 < int(first) <= 31 and 1 <= int(second) <= 12:
        return first, second
    if 12 < int(second) <= 31 and 1 <= int(first) <= 12:
        return second, first
    return (first, second) if first == second and 1 <= int(first) <= 12 else (None, None)
