"""Other ways to write a value: with another number, as another date, the same in other words."""

from __future__ import annotations

import re
from random import Random

from lrp4rag.claims.dates import MONTHS, WEEKDAYS
from lrp4rag.claims.value import Value
from lrp4rag.claims.written import DIGITS, NUMBER_WORD, SMALL_NUMBERS, cased

_LONG_MONTHS = [name.capitalize() for name in MONTHS if len(name) > 4]
_MONTH = re.compile(rf"\b(?:{'|'.join(_LONG_MONTHS)})\b")
_LATEST_YEAR = 2030
_LONGER = {
    "seconds": ("minute", 60),
    "minutes": ("hour", 60),
    "hours": ("day", 24),
    "days": ("week", 7),
    "months": ("year", 12),
}
_HALVES = {0.25: " and a quarter", 0.5: " and a half", 0.75: " and three quarters"}
_RANGE_BEFORE = re.compile(
    r"(?:\d (?:feet|foot|pounds?|hours?|minutes?|years?|months?)|"
    r"\d\s?(?:to|-|\u2013|and|or|x|\u00d7|:)|\b(?:between|from))\s?\Z|-\Z"
)
_RANGE_AFTER = re.compile(r"\s?(?:to|-|\u2013|and|or|x|\u00d7|:)\s?\d")
_FRACTION_BEFORE = re.compile(r"(?:[\d½¼¾⅓⅔]|\d\s?/|\band a|\d[.,])\s?\Z")
_FRACTION_AFTER = re.compile(r"\s?(?:[½¼¾⅓⅔/]|\d/\d)|\.\d")
_NUMBERED = re.compile(
    r"(?:\b(?:steps?|passages?|pages?|chapters?|types?|levels?|grades?|stages?|figures?|tables?|options?|nos?\.|"
    r"sections?|numbers?|parts?|highway|route|interstate)|#)\s?\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(r"[a-z,;] [A-Z]\w*\s\Z")
_UNSPELT = re.compile(r"hundred|thousand|illion| and |dozen|\Aone\Z|\Azero\Z", re.IGNORECASE)
_ARTICLES = re.compile(r"\b(?:the|every|each|first|last|next|past|per|a|an|this|that|of)\s\Z", re.IGNORECASE)


def other_numbers(value: Value, random: Random) -> list[str]:
    """Put other numbers that look as likely into `value`'s text: a digit changed, or a neighbour."""
    number_match = DIGITS.search(value.text)
    if number_match is None:
        word = NUMBER_WORD.search(value.text)
        if word is None:
            return []
        number = SMALL_NUMBERS.index(word[0].lower())
        near = [number + by for by in (-3, -2, -1, 1, 2, 3, 4) if 2 <= number + by < len(SMALL_NUMBERS)]
        return [
            value.text[: word.start()] + cased(SMALL_NUMBERS[neighbour], word[0]) + value.text[word.end() :]
            for neighbour in random.sample(near, len(near))
        ]
    digits, texts = number_match[0], list[str]()
    places = [k for k, sign in enumerate(digits) if sign.isdigit()]
    for _ in range(5):
        place = random.choice(places)
        choices = [
            sign for sign in "0123456789" if sign != digits[place] and not (place == 0 and sign in "01")
        ]
        texts.append(digits[:place] + random.choice(choices) + digits[place + 1 :])
    if len(places) == len(digits) == 2 and digits[0] != digits[1] != "0":
        texts.append(digits[::-1])
    before, after = value.text[: number_match.start()], value.text[number_match.end() :]
    return [before + text + after for text in dict.fromkeys(texts)]


def other_dates(value: Value, random: Random) -> list[str]:
    """Put another month, day, year or weekday into a date's text, each where it is written."""
    text, texts = value.text, list[str]()
    year, _, day, weekday = value.key
    if match := _MONTH.search(text):
        months = [name for name in _LONG_MONTHS if name != match[0]]
        texts.append(text.replace(match[0], random.choice(months)))
    if year is not None:
        years = [
            int(year) + by for by in (-10, -5, -3, -2, -1, 1, 2, 3, 5, 10) if int(year) + by <= _LATEST_YEAR
        ]
        texts += [text.replace(str(year), str(random.choice(years)))] if years else []
    if day is not None:
        days = [str(number) for number in range(4, 29) if number != int(day) and number not in (21, 22, 23)]
        pattern = rf"(?<!\d)0?{day}(?:st|nd|rd|th)?(?!\d)"
        ending = "th" if re.search(rf"{day}[a-z]", text) else ""
        texts.append(re.sub(pattern, random.choice(days) + ending, text, count=1))
    if weekday is not None and int(weekday) < len(WEEKDAYS):  # further ones are parts of a week
        days = [*WEEKDAYS]
        written = days.pop(int(weekday))
        texts.append(text.replace(written, random.choice(days)))
    return random.sample(texts, len(texts))


def other_times(value: Value, random: Random) -> list[str]:
    """Put another hour into a time's text; none where the hour is a word."""
    hour_match = re.match(r"\d+", value.text)
    if hour_match is None:
        opposite = {"noon": "midnight", "midnight": "noon"}.get(value.text.lower())
        return [] if opposite is None else [opposite]
    hour = int(hour_match[0])
    hours = [number for number in (range(1, 13) if hour <= 12 else range(13, 24)) if number != hour]
    return [
        str(drawn).zfill(len(hour_match[0]) if hour_match[0][0] == "0" else 1)
        + value.text[hour_match.end() :]
        for drawn in random.sample(hours, 3)
    ]


def is_label(before: str, after: str) -> bool:
    """Say whether what stands between two texts is part of a fraction or a decimal number, or the number of a
    step, a page or a product."""
    patterns = (_FRACTION_BEFORE, _NUMBERED, _NAMED)
    return any(pattern.search(before[-40:]) for pattern in patterns) or bool(_FRACTION_AFTER.match(after))


def is_bound(before: str, after: str) -> bool:
    """Say whether what stands between two texts is an end of a range."""
    return bool(_RANGE_BEFORE.search(before[-40:]) or _RANGE_AFTER.match(after))


def reworded(value: Value, before: str = "", after: str = "") -> list[str]:
    """Put a value in other words: digits for words, a longer unit, a date the other way round. `before` and
    `after` are what stands around it."""
    if value.kind == "quantity":
        apart = not (is_label(before, after) or is_bound(before, after))
        texts = _quantities(value, before, after) if apart else []
    elif value.kind == "date":
        texts = [] if _ARTICLES.search(before) else _dates(value.text)
    elif value.kind == "period":
        texts = _periods(value.text, before)
    else:
        texts = []
    return [text for text in texts if text != value.text]


def _quantities(value: Value, before: str, after: str) -> list[str]:
    text, texts = value.text, list[str]()
    if value.unit == "%":
        if re.search(r"\d\s?%\Z", text):
            return [re.sub(r"\s?%", " percent", text)]
        return [re.sub(r" (?:percent|per cent)\Z", "%", text)] if text[0].isdigit() else []
    if (match := re.fullmatch(r"(\d{1,2})((?:[ -][a-z]{3,}.*)?)", text)) and int(match[1]) <= 20:
        opens = not before.strip() or before.rstrip().endswith((".", ":", "("))
        if int(match[1]) > 1 and not opens:
            texts.append(SMALL_NUMBERS[int(match[1])] + match[2])
    elif (match := NUMBER_WORD.match(text)) and before.strip() and not _UNSPELT.search(text):
        texts.append(str(SMALL_NUMBERS.index(match[0].lower())) + text[match.end() :])
    if not _ARTICLES.search(before) and not re.match(r"\s(?:an?|per|each|every|old|of)\b|-", after):
        texts += _in_longer_unit(text)
    return texts


def _dates(text: str) -> list[str]:
    if match := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)? (?:of )?([A-Z][a-z]+)(?:,? (\d{4}))?", text):
        return [f"{match[2]} {match[1]}{f', {match[3]}' if match[3] else ''}"]
    if match := re.fullmatch(r"([A-Z][a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?", text):
        return [f"{match[2]} {match[1]}{f' {match[3]}' if match[3] else ''}"]
    if match := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
        month = next((name for name, number in MONTHS.items() if number == int(match[2])), None)
        return [f"{int(match[3])} {month.capitalize()} {match[1]}"] if month else []
    return []


def _periods(text: str, before: str) -> list[str]:
    match = re.fullmatch(r"(an?|per|each|every) ([a-z]+)", text)
    if match is None:
        return []
    unit = match[2]
    if match[1] in ("each", "every"):
        return [f"{'every' if match[1] == 'each' else 'each'} {unit}"]
    # "in a day" is no rate, "twice a day" and "$5 a day" are.
    if not re.search(r"(?:\d|\b(?:once|twice|times|dollars|days|hours|weeks|euros|pounds))\s\Z", before):
        return []
    article = "an" if unit == "hour" else "a"
    return [f"per {unit}" if match[1] != "per" else f"{article} {unit}"]


def _in_longer_unit(text: str) -> list[str]:
    match = re.fullmatch(r"(\d+) (\w+)", text)
    if match is None or match[2] not in _LONGER:
        return []
    unit, factor = _LONGER[match[2]]
    total = int(match[1]) / factor
    count, rest = int(total), total - int(total)
    if not 1 <= count <= 20 or (rest and rest not in _HALVES):
        return []
    number = SMALL_NUMBERS[count]
    if not rest:
        return [f"{number} {unit}{'s' * (count > 1)}"]
    article = "an" if unit == "hour" else "a"
    return [f"{article} {unit}{_HALVES[rest]}" if count == 1 else f"{number}{_HALVES[rest]} {unit}s"]
