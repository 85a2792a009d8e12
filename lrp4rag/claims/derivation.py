"""Values of a response that follow from what it states: "12 months at 34.90 euros are 418.80 euros".

`arithmetic.computed` looks for any values of the passages that may give one, so as not to name a
contradiction. Here each operand must be written, in the response or in the question, and be known: from a
passage, from the question, or by a derivation itself; only what is counted may stand in a passage alone
("three months' rent, so 2,520 euros"). So little is left to chance that a sentence is believed for it.
"""

from __future__ import annotations

import itertools
import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words

KINDS = ("quantity", "time", "date")
MOST_VALUES = 30
"""Values of a text that are looked at, the last ones: what is computed follows what it is computed from."""
MOST_TERMS = 5
"""Terms of a sum."""
MOST_OPERANDS = 12
"""Operands that are tried, those of the sentence itself first."""
LARGEST_COUNT = 1_000_000
FEWEST_DIGITS = 3
"""Significant digits of a product that is not one by chance."""
SMALL = 10
"""Plain counts below this are sums of others by chance."""
EXACT, ROUNDED = 1e-4, 0.01
"""Relative differences of amounts that are the same, and of one that is rounded, at most."""
_MINUTES, _DAY, _LARGEST = 60.0, 86400.0, 1e6
_CALENDAR = 28 * _DAY
"""Of units from which on they differ in length."""
_CONSTANTS = (
    (r"years?|yearly|annual(?:ly)?|per annum", ((12, "12 months"), (52, "52 weeks"), (365, "365 days"))),
    (r"weeks?|weekly", ((7, "7 days"),)),
    (r"double|twice|both|return|round trip|there and back|each way|couple", ((2, "2"),)),
    (r"half|halves|halved", ((0.5, "0.5"),)),
)
"""Numbers that words stand for."""
_PRICE = "price|fare|fee|rate|cost|charge|amount|sum|premium|rent|deposit|contribution"
_HALF = re.compile(
    rf"\bhalf[ -]?(?:{_PRICE})s?\b|\bhalf (?:of )?(?:the|that|this|its|their) (?:{_PRICE})s?\b"
    r"|\b(?:pays?|paid|charged?|costs?|get|at|by|is|are) half\b(?![ -](?:an|a|past)\b)",
    re.IGNORECASE,
)
"""What a passage says of half of a value that the response names."""
_TOTAL = (
    r"in total|total(?:s|ling|led)?|altogether|together|combined|in all|sum|i\.e\.|(?:that|which) is|so"
    r"|makes?|comes? to|plus|namely"
)
_APART = (
    r"left|leaves|remain\w*|another|still|more|less|fewer|difference|sav(?:e|es|ing)|minus|cheaper|dearer|longer"
    r"|shorter|older|younger|heavier|lighter|taller|higher|lower|later|earlier|years? (?:old|ago)|aged"
)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b|=", re.IGNORECASE)


# Words that tell of an operation: values are sums and differences of others by chance too.
_TELLS_SUM, _TELLS_DIFFERENCE = _words(_TOTAL), _words(f"{_APART}|so|(?:that|which) is")
_TELLS_PRODUCT = _words(f"{_TOTAL}|times|each|per|every|apiece")
_OF_MONTH = re.compile(r"\b(?:(?:a|per|each|every) month|monthly)\b", re.IGNORECASE)
_EACH = re.compile(r"\s*(?:an?|per|each|every|/)\s*(night|day|week|month|year|hour|minute)\b", re.IGNORECASE)
_COMPARED = _words("dearer|cheaper|more|less|fewer|longer|shorter|extra|difference|saves?|saving")
_SHARED = _words("split|shared?|divided|equally")
_LESS = _words("off|discount(?:ed)?|reduc\\w+|rebate|cheaper|less|minus|deduct\\w*")
_MORE = _words("plus|surcharge|extra|additional|increas\\w+|rais\\w+|more|vat|tax(?:es)?")
_SAVED = _words("sav(?:e|es|ing)|discount (?:is|of)|of")
_BEFORE = _words("before|earlier|prior|ago|ahead")
_AFTER = _words(
    "after|later|takes?|lasts?|arriv\\w*|within|extend\\w*|extension|valid|works?|expires?|keeps?|notice"
    "|until|till|for|from|end(?:s|ed)?"
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A `value` of a response (its characters there), `words` that give it, such as "34.90 euros × 12
    months", and the passage (an index) that has one of its operands."""

    value: Value
    words: str
    passage: int


@dataclass(frozen=True, slots=True)
class _Operand:
    """A known value, and the passage that has it, or one that it was derived from; None where only the
    question has it. `is_stated` tells that the sentence itself has it; `rate` is what it is had each, such as
    "day"."""

    value: Value
    passage: int | None
    is_stated: bool = False
    rate: str = ""


_Result = tuple[str, tuple[_Operand, ...]]


def derivations(
    response: str, sentence: tuple[int, int], question: str, index: Index
) -> tuple[Derivation, ...]:
    """Derive the values of a sentence (its characters) that no passage has from others of the response up to
    its end, and of the question."""
    text = response[: sentence[1]]
    asked = _values(question)
    known, unknown = list[_Operand](), list[Value]()
    for value in _values(text):
        operands = _known(value, index)
        if not operands and any(agree(value, one) for one in asked):
            operands = [_Operand(value, None)]
        known += [replace(one, is_stated=value.start >= sentence[0]) for one in operands]
        if not any(one.value is value for one in operands):
            unknown.append(value)
    known += [operand for value in asked for operand in _known(value, index) or [_Operand(value, None)]]
    derived = list[Derivation]()
    stated_of = {one.passage for one in known}
    if any(_HALF.search(index.texts[number]) for number in stated_of if number is not None):
        question = f"{question} half"
    near = _distinct(
        [
            _Operand(one, place.passage, rate=_rate(index.texts[place.passage], one))
            for place in index.places
            if place.passage in stated_of
            for one in place.values
            if one.kind == "quantity"
        ]
    )
    while (found := _next(unknown, known, near, text, sentence, question)) is not None:
        unknown.remove(found.value)
        known.insert(0, _Operand(found.value, found.passage, found.value.start >= sentence[0]))
        derived.append(found)
    return tuple(one for one in derived if sentence[0] <= one.value.start)


def _rate(text: str, value: Value) -> str:
    """Return of what a passage says that a value is had each: "day" of "9 euros a day"; "" for none."""
    found = _EACH.match(text, value.end)
    return found[1].lower() if found else ""


def restatements(response: str, sentence: tuple[int, int], index: Index) -> Iterator[Derivation]:
    """Yield the values of a sentence (its characters) that passages have in other units or words only: "21
    days" of "three weeks", "midday" of "noon"."""
    for value in _values(response[: sentence[1]]):
        if value.start >= sentence[0]:
            same = [
                (number, one)
                for number, place in enumerate(index.places)
                for one in place.values
                if agree(value, one)
            ]
            if same and all(_is_in_other_words(value, one) for _, one in same):
                likeness = index.similarities(content_words(response[slice(*sentence)]))
                number, one = max(same, key=lambda each: likeness[each[0]])
                yield Derivation(value, one.text, index.places[number].passage)


def _is_in_other_words(value: Value, other: Value) -> bool:
    if value.kind == "quantity":
        first, second = value.precision.factor, other.precision.factor
        # A month is not 30 days.
        return first != second and (first < _CALENDAR) == (second < _CALENDAR) and _is(value, other.amount)
    letters = ("".join(filter(str.isalnum, one.text.casefold())) for one in (value, other))
    return value.key == other.key and len(set(letters)) == 2


def _values(text: str) -> list[Value]:
    """Return the last values of a text that may be derived, or that others are derived from."""
    return [value for value in find_values(text) if value.kind in KINDS][-MOST_VALUES:]


def _known(value: Value, index: Index) -> list[_Operand]:
    """Return the value with the first passage that has it, or of a bare number what passages have so many of:
    "25" of "25 euros a night"."""
    there = [(one, place.passage) for place in index.places for one in place.values if one.kind == value.kind]
    for one, passage in there:
        if agree(value, one):
            return [_Operand(value, passage)]
    if value.kind != "quantity" or value.unit or value.noun:
        return []
    meant = dict[str, _Operand]()
    for one, passage in there:
        if one.unit not in ("", "second", "%") and one.amount == value.amount * one.precision.factor:
            meant.setdefault(one.unit, _Operand(one, passage))
    return list(meant.values())


def _next(
    unknown: Sequence[Value],
    known: Sequence[_Operand],
    near: Sequence[_Operand],
    text: str,
    sentence: tuple[int, int],
    question: str,
) -> Derivation | None:
    operands = _distinct(known)
    for value in unknown:
        own = text[sentence[0] :] if value.start >= sentence[0] else text
        if value.kind == "quantity" and not value.unit and value.amount < SMALL:
            continue
        for words, used in _ways(value, operands, near, own, question):
            passages = [one.passage for one in used if one.passage is not None]
            if passages:
                return Derivation(value, words, passages[0])
    return None


def _distinct(known: Sequence[_Operand]) -> list[_Operand]:
    """Return each once: a number that is said again is no further term."""
    distinct = dict[tuple[object, ...], _Operand]()
    for one in known:
        value = one.value
        if value.kind != "quantity" or value.unit or value.amount > 1:
            amount = (value.amount, value.precision.factor) if value.kind == "quantity" else ()
            key = (value.kind, value.unit, value.key, *amount)
            distinct.setdefault(key, one)
    return sorted(distinct.values(), key=lambda one: not one.is_stated)[:MOST_OPERANDS]


def _ways(
    value: Value, known: Sequence[_Operand], near: Sequence[_Operand], own: str, question: str
) -> Iterator[_Result]:
    if value.kind == "time":
        yield from _times(value, known, own)
    elif value.kind == "date":
        yield from _dates(value, known, own)
    else:
        constants = _constants(value, own, question)
        yield from _sums(value, known, own, question)
        if value.unit or _TELLS_PRODUCT.search(own):
            yield from _products(value, known, own, constants)
        yield from _percentages(value, known, own)
        yield from _between(value, known, own)
        if value.unit not in ("", "second", "%"):
            yield from _counted(value, near, known, constants)
            yield from _compared(value, near, known, own)


def _sums(value: Value, known: Sequence[_Operand], own: str, question: str) -> Iterator[_Result]:
    terms = [one for one in known if comparable(value, one.value)]
    if _TELLS_DIFFERENCE.search(f"{question} {own}"):
        for minuend, subtrahend in itertools.permutations(terms, 2):
            if _is(value, minuend.value.amount - subtrahend.value.amount):
                yield f"{minuend.value.text} - {subtrahend.value.text}", (minuend, subtrahend)
    tells = _TELLS_SUM.search(own) or f"{value.text}:" in own
    if tells and not re.search(r"\b(?:left|leaves|remain\w*)\b", own, re.IGNORECASE):
        for size in range(2, min(len(terms), MOST_TERMS) + 1):
            for some in itertools.combinations(terms, size):
                if _is(value, sum(one.value.amount for one in some)):
                    yield " + ".join(one.value.text for one in some), some


_Count = tuple[float, str, "_Operand | None"]


def _products(
    value: Value, known: Sequence[_Operand], own: str, constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Times a count, also with another term added or taken away: "19 pence a minute and 1 pound"."""
    if value.unit == "%":
        return
    terms = [one for one in known if comparable(value, one.value)]
    counts = [*_counts(value, known), *constants]
    for factor in terms:
        for number, words, counted in counts:
            of_time = counted is None or counted.value.unit == "second"
            is_product_of_time = value.unit == "second" and of_time
            # "2 tablets every 4 hours" are not eight.
            is_rate = not value.unit and counted is not None and counted.value.unit == "second"
            if counted is factor or is_product_of_time or is_rate:
                continue
            used = (factor,) if counted is None else (factor, counted)
            product, formula = factor.value.amount * number, f"{factor.value.text} \u00d7 {words}"
            if _is(value, product):
                yield formula, used
            if not of_time and _SHARED.search(own) and _is(value, factor.value.amount / number):
                yield f"{factor.value.text} / {words}", used
            if counted is None or not value.unit or not all(one.is_stated for one in used):
                continue
            for term in (one for one in terms if one.is_stated and one not in used):
                for sign, by, tells in (("+", 1, _TELLS_SUM), ("-", -1, _TELLS_DIFFERENCE)):
                    if tells.search(own) and _is(value, product + by * term.value.amount):
                        yield f"{formula} {sign} {term.value.text}", (*used, term)


def _counted(
    value: Value, near: Sequence[_Operand], known: Sequence[_Operand], constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Times a count that is stated, or that of months in a year, of what only a passage has. Few digits are
    enough where the passage has it each day, and days are counted."""
    digits = value.precision.digits
    for factor in (one for one in near if comparable(value, one.value)):
        for number, words, counted in (*_counts(value, known), *constants):
            is_rate = bool(factor.rate) and factor.rate in words.lower()
            is_long = digits >= FEWEST_DIGITS and (counted is not None or digits > FEWEST_DIGITS)
            if (is_rate or is_long) and _is(value, factor.value.amount * number):
                used = (factor,) if counted is None else (factor, counted)
                yield f"{factor.value.text} \u00d7 {words}", used


def _compared(
    value: Value, near: Sequence[_Operand], known: Sequence[_Operand], own: str
) -> Iterator[_Result]:
    """By how much what only a passage has is more or less than what is stated."""
    if not _COMPARED.search(own) or value.precision.digits < 2:
        return
    for one in (one for one in known if comparable(value, one.value) and one.passage is not None):
        for other in (other for other in near if other.passage == one.passage):
            if comparable(value, other.value) and _is(value, abs(other.value.amount - one.value.amount)):
                larger, smaller = sorted((one, other), key=lambda each: -each.value.amount)
                yield f"{larger.value.text} - {smaller.value.text}", (one, other)


def _counts(value: Value, known: Sequence[_Operand]) -> Iterator[_Count]:
    """Numbers of things or units of time, and of what else has a price."""
    is_money = value.unit.isupper()
    for one in known:
        unit = one.value.unit
        priced = is_money and unit != "%" and not unit.isupper()
        if one.value.kind == "quantity" and (unit in ("", "second") or priced):
            number = one.value.amount / one.value.precision.factor
            if 1 < number <= LARGEST_COUNT:
                yield number, one.value.text, one


def _constants(value: Value, own: str, question: str) -> list[_Count]:
    """Numbers that words stand for; no 12 months where the value is told of a month."""
    at = max(own.find(value.text), 0)
    behind = at + len(value.text) + 20
    of_year = re.search(r"\b(?:year|annual)", own[at:behind], re.IGNORECASE)
    of_month = not of_year and _OF_MONTH.search(own, max(at - 30, 0), behind)
    return [
        (number, words, None)
        for pattern, numbers in _CONSTANTS
        if re.search(rf"\b(?:{pattern})\b", f"{question} {own}", re.IGNORECASE)
        for number, words in numbers
        if not (of_month and number == 12)
    ]


def _percentages(value: Value, known: Sequence[_Operand], own: str) -> Iterator[_Result]:
    terms = [one for one in known if one.value.kind == "quantity"]
    less, more = _LESS.search(own), _MORE.search(own)
    for part in (one for one in terms if one.value.unit == "%"):
        if value.unit == "%" and _TELLS_DIFFERENCE.search(own) and _is(value, 100 - part.value.amount):
            yield f"100 % - {part.value.text}", (part,)
        if value.unit in ("second", "%"):
            continue
        for whole in (one for one in terms if comparable(value, one.value)):
            share = whole.value.amount * part.value.amount / 100
            for words, amount, told in (
                ("\u00d7", share, _SAVED.search(own) if less else not more),
                ("+", whole.value.amount + share, more),
                ("-", whole.value.amount - share, less),
            ):
                if told and _is(value, amount):
                    yield f"{whole.value.text} {words} {part.value.text}", (whole, part)
    if value.unit == "%" and value.amount <= 100:
        for part, whole in itertools.permutations((one for one in terms if one.value.unit != "%"), 2):
            amount = whole.value.amount if comparable(part.value, whole.value) else 0
            if amount and _is(value, 100 * part.value.amount / amount):
                yield f"{part.value.text} / {whole.value.text}", (part, whole)


def _between(value: Value, known: Sequence[_Operand], own: str) -> Iterator[_Result]:
    """Durations between two times, and years between two dates."""
    if value.unit != "second" or not _words(f"{_TOTAL}|{_APART}|lasts?|takes?|long").search(own):
        return
    for later, earlier in itertools.permutations((one for one in known if one.value.kind == "time"), 2):
        if _is(value, (int(later.value.key[0] or 0) - int(earlier.value.key[0] or 0)) * _MINUTES):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)
    for later, earlier in itertools.permutations((one for one in known if one.value.kind == "date"), 2):
        year, before = later.value.key[0], earlier.value.key[0]
        years = year - before if isinstance(year, int) and isinstance(before, int) else 0
        if _is(value, years * 365.25 * _DAY):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)


def _durations(known: Sequence[_Operand]) -> list[_Operand]:
    return [one for one in known if one.value.kind == "quantity" and one.value.unit == "second"]


def _directions(own: str) -> list[tuple[str, int]]:
    """Return the signs that a sentence tells of: what lies before another is never after it."""
    if _BEFORE.search(own):
        return [("-", -1)]
    return [("+", 1)] if _AFTER.search(own) else []


def _times(value: Value, known: Sequence[_Operand], own: str) -> Iterator[_Result]:
    for one in (one for one in known if one.value.kind == "time"):
        for by in _durations(known):
            for sign, way in _directions(own):
                minutes = int(one.value.key[0] or 0) + way * by.value.amount / _MINUTES
                if abs(minutes) < _LARGEST and minutes == round(minutes):
                    key = (round(minutes) % 1440, *one.value.key[1:])
                    if agree(value, replace(one.value, key=key)):
                        yield f"{one.value.text} {sign} {by.value.text}", (one, by)


def _dates(value: Value, known: Sequence[_Operand], own: str) -> Iterator[_Result]:
    for one in (one for one in known if one.value.kind == "date" and not one.value.unit):
        for by in _durations(known):
            for sign, way in _directions(own):
                key = _moved(one.value, by.value, way)
                if key is not None and agree(value, replace(one.value, key=key)):
                    yield f"{one.value.text} {sign} {by.value.text}", (one, by)


def _moved(value: Value, by: Value, way: int) -> tuple[str | int | None, ...] | None:
    """Return the key of a date that many days, weeks, months or years later or earlier; None for one that
    lacks what this needs."""
    year, month, day, *_ = value.key
    number, unit = way * by.amount / by.precision.factor, round(by.precision.factor / _DAY)
    if abs(number) > _LARGEST or number != round(number):
        return None
    some_year = year if isinstance(year, int) else 2001
    moved: tuple[int, int | str | None, int | str | None]
    if unit in (365, 366) and isinstance(year, int):
        return year + int(number), month, day, None
    if unit in (30, 31) and isinstance(month, int):
        months = some_year * 12 + month - 1 + int(number)
        moved_year, moved_month = months // 12, months % 12 + 1
        if not 1 <= moved_year <= 9999:
            return None
        last = monthrange(moved_year, moved_month)[1]
        moved = moved_year, moved_month, min(day, last) if isinstance(day, int) else day
    elif unit in (1, 7) and isinstance(month, int) and isinstance(day, int):
        try:
            later = date(some_year, month, day) + timedelta(days=unit * number)
        except (ValueError, OverflowError):
            return None
        moved = later.year, later.month, later.day
    else:
        return None
    return moved[0] if isinstance(year, int) else None, *moved[1:], None


def _is(value: Value, amount: float) -> bool:
    """Say whether an amount is the value's, which may round it where it has three digits or more, or where it
    is "about" that."""
    precision, most = value.precision, ROUNDED * amount
    room = most if precision.hedged else min(precision.step, most) if precision.digits > 2 else 0.0
    return amount > 0 and abs(value.amount - amount) <= max(EXACT * amount, room)
