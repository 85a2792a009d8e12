"""Faults of values: another number, another name, another date, unit or period."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Occurrence, rivals
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.written import as_written
from lrp4rag.training.pairs.edit import SUPPORTED, Draft, Edit, index_of
from lrp4rag.training.pairs.wording import is_label, other_dates, other_numbers, other_times

CLEARLY_WORSE = 0.75
"""A value that the passages have elsewhere is wrong here if its surroundings fit the statement less than this
share of how well those of the written value fit."""

_FAMILIES = (
    "mm cm m km",
    "millimetres centimetres metres kilometres",
    "millimeters centimeters meters kilometers",
    "inches feet yards miles",
    "inch foot yard mile",
    "seconds minutes hours days weeks months years",
    "second minute hour day week month year",
    "mg g kg",
    "milligrams grams kilograms",
    "ounces pounds tons",
    "ml l",
    "millilitres litres",
    "milliliters liters",
    "teaspoons tablespoons cups",
    "teaspoon tablespoon cup",
    "°C °F",
    "MB GB TB",
    "W kW MW",
    "thousand million billion",
)

_MONEY = ("dollars euros pounds", "$ € £")


def _swaps(families: Iterable[str]) -> dict[str, list[str]]:
    """Map each word to its neighbours in its family: minutes to seconds, not to years."""
    swaps = {}
    for words in map(str.split, families):
        for k, word in enumerate(words):
            swaps[word] = [neighbour for neighbour in words[max(k - 2, 0) : k + 3] if neighbour != word]
    return swaps


_UNITS, _CURRENCIES = _swaps(_FAMILIES), _swaps(_MONEY)

_UNIT = re.compile(
    r"(?<![a-zA-Z])(?:"
    + "|".join(re.escape(unit) for unit in sorted({*_UNITS, *_CURRENCIES}, key=len, reverse=True))
    + r")(?![\w²³/])"
)

_PERIODS = ("hour", "day", "week", "month", "quarter", "year")

_ADVERBS = ("hourly", "daily", "weekly", "monthly", "yearly", "annually")

TEMPERATURE_SCALES = {"F", "C", "Fahrenheit", "Celsius"}


def numbers(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put another number: one that the passages have elsewhere, or one that they do not have."""
    for value in draft.shuffled(random, "quantity"):
        around = draft.response[: value.start], draft.response[value.end :]
        if value.text.lower() == "one" or is_label(*around) or draft.supported(value) < SUPPORTED:
            continue
        written = [as_written(value, rival.value) for rival in rivals(value, draft.occurrences(value))]
        texts = [text for text in written if text is not None][:4]
        if random.random() < 0.5:
            texts = []  # else most faults would be numbers of the passages
        texts += other_numbers(value, random)
        yield from _first(draft, "number", value, texts)


def names(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put another name: one that the passages have elsewhere, or else one of another source."""
    for value in draft.shuffled(random, "name"):
        if value.text in TEMPERATURE_SCALES or draft.supported(value) < SUPPORTED:
            continue
        texts = [
            rival.value.text
            for rival in rivals(value, draft.occurrences(value))
            if not set(rival.value.key) & set(value.key)
            and _can_replace(rival.value, value.text, draft.example.passages[rival.passage], draft)
        ]
        texts = random.sample(texts, len(texts))
        if (name := name_of_another(draft, value.text, random)) is not None:
            texts.append(name)
        yield from _first(draft, "name", value, texts)


def dates_and_units(draft: Draft, random: Random) -> Iterator[Edit]:
    """Put another month, day, year, weekday or hour, another unit of the same family, another period."""
    for value in draft.shuffled(random, "date", "time", "period", "quantity"):
        texts: list[str] = []
        if value.kind == "date":
            texts = other_dates(value, random)
            texts += [
                rival.value.text
                for rival in rivals(value, draft.occurrences(value))
                if _missing_fields(rival.value) == _missing_fields(value)
                and len(rival.value.text.split()) == len(value.text.split())
            ]
        elif value.kind == "time":
            texts = other_times(value, random)
        elif value.kind == "period":
            texts = _other_periods(value, random)
        elif match := _UNIT.search(value.text):
            scale = match[0] in ("thousand", "million", "billion")
            money = value.unit in ("USD", "EUR", "GBP") and not scale
            before, after = value.text[: match.start()], value.text[match.end() :]
            replacements = (_CURRENCIES if money else _UNITS).get(match[0], [])
            texts = [_with_article(before + word + after) for word in replacements]
        if texts and draft.supported(value) >= SUPPORTED:
            yield from _first(draft, "date or unit", value, random.sample(texts, len(texts)))


def is_wrong(draft: Draft, value: Value, text: str) -> bool:
    """Say whether `text` in the place of a value that the passages support contradicts them: it is a value of
    the same kind that does not agree, that the question does not have, that lies in no range of the
    passages, and that the passages have at most in places that fit the statement clearly worse."""
    start, end = draft.sentence(value.start)
    sentence = draft.response[start : value.start] + text + draft.response[value.end : end]
    place = (value.start - start, value.start - start + len(text))
    values = (each for each in find_values(sentence, draft.surroundings) if (each.start, each.end) == place)
    written = next((candidate for candidate in values if candidate.kind == value.kind), None)
    if written is None or any(agree(written, each) for each in (value, *draft.question_values)):
        return False
    written = replace(written, start=value.start, end=value.end)
    occurrences, support = draft.occurrences(written), draft.supported(value)
    fits = any(
        agree(written, occurrence.value) and occurrence.similarity >= CLEARLY_WORSE * support
        for occurrence in occurrences
    )
    return not fits and not _in_a_range(written, occurrences)


def _first(draft: Draft, kind: str, value: Value, texts: Iterable[str]) -> Iterator[Edit]:
    """Yield the edit to the first of these texts that is wrong in the place of the value."""
    for text in texts:
        edit = draft.edit(kind, value.start, value.end, text)
        if edit is not None and is_wrong(draft, value, text):
            yield edit
            return


def name_of_another(draft: Draft, name: str, random: Random) -> str | None:
    """Draw a name of another source that can replace one and that the passages do not have."""
    text = draft.context.lower()
    candidates = [
        value.text
        for lender in draft.others
        for place in index_of(tuple(lender.passages)).places
        for value in place.values
        if value.kind == "name"
        and _can_replace(value, name, lender.passages[place.passage], draft)
        and value.text.lower() not in text
    ]
    return random.choice(candidates) if candidates else None


def _can_replace(new: Value, name: str, passage: str, draft: Draft) -> bool:
    """Say whether it is surely a name, inside a sentence and no common word, and looks alike."""
    words = new.text.split()
    return (
        _looks(new.text) == _looks(name)
        and len(words) <= len(name.split()) + 1
        and new.text not in TEMPERATURE_SCALES
        and re.search(r"[a-z,;] \Z", passage[max(new.start - 2, 0) : new.start]) is not None
        and not any(is_common(word, draft) for word in words[:1])
    )


def is_common(word: str, draft: Draft) -> bool:
    """Say whether a word is written in small letters too."""
    small = word.lower()
    return small in draft.common or re.search(rf"\b{re.escape(small)}\b", draft.context) is not None


def _in_a_range(value: Value, occurrences: Iterable[Occurrence]) -> bool:
    """Say whether a quantity lies between two that stand side by side in a passage, such as "20 to 60 mm"."""
    if value.kind != "quantity":
        return False
    ordered = sorted(occurrences, key=lambda occurrence: (occurrence.passage, occurrence.value.start))
    return any(
        first.passage == second.passage
        and second.value.start - first.value.end <= len(" and  ")
        and min(first.value.amount, second.value.amount)
        <= value.amount
        <= max(first.value.amount, second.value.amount)
        for first, second in pairwise(ordered)
    )


def _other_periods(value: Value, random: Random) -> list[str]:
    text = value.text
    if text.lower() in _ADVERBS:
        texts = [
            adverb
            for adverb in _ADVERBS
            if adverb not in (text.lower(), "hourly") and {adverb, text.lower()} != {"yearly", "annually"}
        ]
    else:
        unit = str(value.key[0])
        periods = [period for period in _PERIODS if unit in _PERIODS and period != unit]
        texts = [_with_article(re.sub(unit, period, text)) for period in periods]
    return random.sample(texts, len(texts))


def _with_article(text: str) -> str:
    """Give a text the "a" or "an" that an hour, or another unit, needs."""
    return re.sub(
        r"\A(a)n? (?=\w+\Z)", r"\1n " if text.endswith("hour") else r"\1 ", text, flags=re.IGNORECASE
    )


def _looks(text: str) -> tuple[bool, bool, bool]:
    """Tell digits, capitals only, several words: an identifier is no person's name."""
    return any(sign.isdigit() for sign in text), text.isupper(), " " in text


def _missing_fields(value: Value) -> list[bool]:
    return [field is None for field in value.key]
