"""Values of a response that follow from what it states: "12 months at 34.90 euros are 418.80 euros".

`arithmetic.computed` looks for any values of the passages that may give one, so as not to name a
contradiction. Here most operands must be written, in the response or in the question, and be known: from a
passage, from the question, or by a derivation itself ("three months' rent, so 2,520 euros" counts what is
written). What only a passage has is an operand where its words tell so: "£285 per child", "10% less", "two
years later". So little is left to chance that a sentence is believed for it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.operands import (
    CALENDAR,
    COMPARED,
    LESS,
    MINUTES,
    MORE,
    TWO,
    YEAR,
    Operand,
    difference,
    is_result,
    moved_date,
    moved_time,
    of_kind,
    rate_of,
    telling,
    terms_of,
)
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words
from lrp4rag.claims.worked_out import FEWEST_DIGITS, Case, worked_out

KINDS = ("quantity", "time", "date")
MOST_VALUES = 30
"""Values of a text that are looked at, the last ones: a result stands behind its operands."""
LOOKED_BACK = 2_000
"""Characters before a sentence in which they are looked for."""
_BORDER = re.compile(r"(?<=[.!?])\s+|\n+")
MOST_TERMS = 5
"""Terms of a sum."""
MOST_PRICES, MOST_TIMES = 4, 6
"""Prices of a bill, the last ones, and how many times each is tried."""
MOST_OPERANDS = 12
"""Operands that are tried, those of the sentence itself first."""
LARGEST_COUNT = 1_000_000
SMALL = 10
"""Plain counts below this are sums of others by chance."""
_CONSTANTS = (
    (r"years?|yearly|annual(?:ly)?|per annum", ((12, "12 months"), (52, "52 weeks"), (365, "365 days"))),
    (r"weeks?|weekly", ((7, "7 days"),)),
    (rf"double|twice|return|round trip|there and back|each way|{TWO}", ((2, "2"),)),
    (r"half|halves|halved", ((0.5, "0.5"),)),
)
"""Numbers that words stand for."""
_PRICE = "price|fare|fee|rate|cost|charge|amount|sum|premium|rent|deposit|contribution"
_HALF = re.compile(
    rf"\bhalf[ -]?(?:{_PRICE})s?\b|\bhalf (?:of )?(?:the|that|this|its|their) (?:{_PRICE})s?\b"
    r"|\b(?:pays?|paid|charged?|costs?|get|at|by|is|are) half\b(?![ -](?:an|a|past)\b)",
    re.IGNORECASE,
)
"""Words by which a passage speaks of half of a value that the response names."""
_TOTAL = (
    r"in total|total(?:s|ling|led)?|altogether|together|combined|in all|sum|i\.e\.|(?:that|which) is|so"
    r"|makes?|comes? to|plus|namely"
)
_APART = (
    r"left|leaves|to spare|remain\w*|another|still|more|less|fewer|difference|sav(?:e|es|ing)|minus|cheaper"
    r"|dearer|longer|shorter|older|younger|heavier|lighter|taller|higher|lower|later|earlier"
    r"|years? (?:old|ago)|aged"
)


# Words that tell of an operation: values are sums and differences of others by chance too.
_TELLS_SUM, _TELLS_DIFFERENCE = telling(_TOTAL), telling(f"{_APART}|so|(?:that|which) is")
_TELLS_PRODUCT = telling(f"{_TOTAL}|times|each|per|every|apiece")
_OF_MONTH = re.compile(r"\b(?:(?:a|per|each|every) month|monthly)\b", re.IGNORECASE)
_SHARED = telling("split|shared?|divided|equally")
_SAVED = telling("sav(?:e|es|ing)|discount (?:is|of)|of")
_BEFORE = telling("before|earlier|prior|ago|ahead")
_AFTER = telling(
    "after|later|takes?|lasts?|arriv\\w*|within|extend\\w*|extension|valid|works?|expires?|keeps?|notice"
    "|until|till|for|from|end(?:s|ed)?"
)


@dataclass(frozen=True, slots=True)
class Derivation:
    """A `value` of a response (its characters there), `words` that give it, such as "34.90 euros × 12
    months", and the passage (an index) that has one of its operands, or of which the value is said."""

    value: Value
    words: str
    passage: int


_Result = tuple[str, tuple[Operand, ...]]


def derivations(
    response: str, sentence: tuple[int, int], question: str, index: Index
) -> tuple[Derivation, ...]:
    """Derive the values of a sentence (its characters) that no passage has from other values of the response
    up to its end, and of the question."""
    first, text = _up_to(response, sentence)
    sentence = sentence[0] - first, sentence[1] - first
    question_values = _values(question)
    operands, unknown = list[Operand](), list[Value]()
    for value in _values(text):
        sources = _operands_of(value, index)
        if not sources and any(agree(value, question_value) for question_value in question_values):
            sources = [Operand(value, None)]
        operands += [replace(source, is_stated=value.start >= sentence[0]) for source in sources]
        if not any(source.value is value for source in sources):
            unknown += [value, *(_as_price(value, text) if not sources else ())]
    for value in question_values:
        operands += _operands_of(value, index) or [Operand(value, None)]
    derived = list[Derivation]()
    passages = {*_closest(text[slice(*sentence)], index), *(operand.passage for operand in operands)}
    if any(_HALF.search(index.texts[number]) for number in passages if number is not None):
        question = f"{question} half"
    near = _distinct(
        [
            Operand(value, place.passage, rate=rate_of(index.texts[place.passage], value))
            for place in index.places
            if place.passage in passages
            for value in place.values
            if value.kind == "quantity"
        ]
    )
    untried = list(unknown)

    def next_worked_out() -> Derivation | None:
        while untried:
            value = untried.pop(0)
            if value in unknown:
                statement = _statement(value, text, sentence)
                for words, passage in worked_out(Case(value, statement, question, operands, index)):
                    return Derivation(value, words, passage)
        return None

    def next_derivation() -> Derivation | None:
        return _next(unknown, operands, near, text, sentence, question, index) or next_worked_out()

    while (derivation := next_derivation()) is not None:
        value = derivation.value
        unknown = [each for each in unknown if each.start != value.start]
        operands.insert(0, Operand(value, derivation.passage, value.start >= sentence[0]))
        derived.append(derivation)
    return tuple(
        replace(derivation, value=derivation.value.shifted(first))
        for derivation in derived
        if sentence[0] <= derivation.value.start
    )


def _closest(text: str, index: Index) -> list[int]:
    """Return the passage that has most of a text's words, if any has one."""
    return [index.places[place].passage for place, _ in index.closest(content_words(text))[:1]]


def _as_price(value: Value, text: str) -> list[Value]:
    """Return a bare number as a price, in a text with prices of one currency: "17 euros a month, 204 a
    year"."""
    currencies = {each.unit for each in find_values(text) if each.unit.isupper()}
    is_bare = value.kind == "quantity" and not value.unit and not value.noun and value.precision.digits > 1
    return [replace(value, unit=currencies.pop())] if is_bare and len(currencies) == 1 else []


def _up_to(response: str, sentence: tuple[int, int]) -> tuple[int, str]:
    """Return the text that ends with a sentence, and the character at which it begins: where a sentence or a
    line begins, if one does."""
    far = max(0, sentence[0] - LOOKED_BACK)
    border = _BORDER.search(response, far, sentence[0]) if far else None
    first = border.end() if border else far
    return first, response[first : sentence[1]]


def _statement(value: Value, text: str, sentence: tuple[int, int]) -> str:
    """Return what a value is read with: its sentence, of an earlier value all of the text."""
    return text[sentence[0] :] if value.start >= sentence[0] else text


def restatements(response: str, sentence: tuple[int, int], index: Index) -> Iterator[Derivation]:
    """Yield the values of a sentence (its characters) that passages have in other units or words only: "21
    days" of "three weeks", "midday" of "noon"."""
    first, text = _up_to(response, sentence)
    for value in (value.shifted(first) for value in _values(text)):
        if value.start >= sentence[0]:
            matches = [
                (number, source)
                for number, place in enumerate(index.places)
                for source in place.values
                if agree(value, source)
            ]
            if matches and all(_is_in_other_words(value, source) for _, source in matches):
                likeness = index.similarities(content_words(response[slice(*sentence)]))
                number, source = max(matches, key=lambda pair: likeness[pair[0]])
                yield Derivation(value, source.text, index.places[number].passage)


def _is_in_other_words(value: Value, source: Value) -> bool:
    if value.kind == "quantity":
        first, second = value.precision.factor, source.precision.factor
        # A month is not 30 days.
        return (
            first != second and (first < CALENDAR) == (second < CALENDAR) and is_result(value, source.amount)
        )
    letters = ("".join(filter(str.isalnum, side.text.casefold())) for side in (value, source))
    return value.key == source.key and len(set(letters)) == 2


def _values(text: str) -> list[Value]:
    """Return the last values of a text that may be derived, or that others are derived from."""
    return [value for value in find_values(text) if value.kind in KINDS][-MOST_VALUES:]


def _operands_of(value: Value, index: Index) -> list[Operand]:
    """Return the value with the first passage that has it, or of a bare number the passages' values that have
    this number and a unit: "25 euros" of "25"."""
    candidates = [
        (candidate, place.passage)
        for place in index.places
        for candidate in place.values
        if candidate.kind == value.kind
    ]
    for candidate, passage in candidates:
        if agree(value, candidate):
            return [Operand(value, passage)]
    if value.kind != "quantity" or value.unit or value.noun:
        return []
    by_unit = dict[str, Operand]()
    for candidate, passage in candidates:
        unit, amount = candidate.unit, value.amount * candidate.precision.factor
        if unit not in ("", "second", "%") and candidate.amount == amount:
            by_unit.setdefault(unit, Operand(candidate, passage))
    return list(by_unit.values())


def _next(
    unknown: Sequence[Value],
    operands: Sequence[Operand],
    near: Sequence[Operand],
    text: str,
    sentence: tuple[int, int],
    question: str,
    index: Index,
) -> Derivation | None:
    distinct = _distinct(operands)
    for value in unknown:
        statement = _statement(value, text, sentence)
        if value.kind == "quantity" and not value.unit and value.amount < SMALL:
            continue
        supposed = [
            Operand(each, None, True)
            for each in unknown
            if value.unit.isupper() and not each.unit.isupper() and each.start >= sentence[0]
        ]
        for words, used in _ways(value, [*distinct, *supposed], near, statement, question):
            passages = [operand.passage for operand in used if operand.passage is not None]
            if not passages:  # all are the asker's own: "280 miles there and back"
                passages = _closest(statement, index)
            if passages:
                return Derivation(value, words, passages[0])
    return None


def _distinct(operands: Sequence[Operand]) -> list[Operand]:
    """Return each operand once: a number that is written again is no further term."""
    distinct = dict[tuple[object, ...], Operand]()
    for operand in sorted(operands, key=lambda operand: not operand.is_stated):
        value = operand.value
        if value.kind != "quantity" or value.unit or value.amount > 1:
            amount = (value.amount, value.precision.factor) if value.kind == "quantity" else ()
            key = (value.kind, value.unit, value.key, *amount)
            distinct.setdefault(key, operand)
    return list(distinct.values())[:MOST_OPERANDS]


def _ways(
    value: Value, operands: Sequence[Operand], near: Sequence[Operand], statement: str, question: str
) -> Iterator[_Result]:
    if value.kind in ("time", "date"):
        yield from _moments(value, operands, statement)
    else:
        constants = _constants(value, statement, question)
        yield from _sums(value, operands, statement, question)
        if value.unit or _TELLS_PRODUCT.search(statement):
            yield from _products(value, operands, statement, constants)
        yield from _percentages(value, operands, statement)
        yield from _between(value, operands, statement)
        if value.unit not in ("", "second", "%"):
            yield from _counted(value, near, operands, constants)
            yield from _compared(value, near, operands, statement)


def _sums(value: Value, operands: Sequence[Operand], statement: str, question: str) -> Iterator[_Result]:
    terms = terms_of(value, operands)
    if _TELLS_DIFFERENCE.search(f"{question} {statement}"):
        for minuend, subtrahend in itertools.permutations(terms, 2):
            if is_result(value, minuend.value.amount - subtrahend.value.amount):
                yield f"{minuend.value.text} - {subtrahend.value.text}", (minuend, subtrahend)
    is_all = re.search(
        rf"\ball (?:of )?{re.escape(value.text)}\b|\b{re.escape(value.text)} of (?:you|us)\b", statement
    )
    tells = is_all or _TELLS_SUM.search(statement) or f"{value.text}:" in statement
    if tells and not re.search(r"\b(?:left|leaves|remain\w*)\b", statement, re.IGNORECASE):
        for size in range(2, min(len(terms), MOST_TERMS) + 1):
            for chosen in itertools.combinations(terms, size):
                if is_result(value, sum(term.value.amount for term in chosen)):
                    yield " + ".join(term.value.text for term in chosen), chosen
        yield from _reduced_sums(value, terms, statement)


def _reduced_sums(value: Value, terms: Sequence[Operand], statement: str) -> Iterator[_Result]:
    """Yield sums less one term: "the display is 139 euros and the battery 49, together 20 off, so 168"."""
    stated = [term for term in terms if term.is_stated]
    if LESS.search(statement) and value.precision.digits > 1:
        for size in range(3, min(len(stated), MOST_TERMS) + 1):
            for chosen in itertools.combinations(stated, size):
                total = sum(term.value.amount for term in chosen)
                for less in chosen:
                    if is_result(value, total - 2 * less.value.amount):
                        added = " + ".join(term.value.text for term in chosen if term is not less)
                        yield f"{added} - {less.value.text}", chosen


_Count = tuple[float, str, "Operand | None"]


def _products(
    value: Value, operands: Sequence[Operand], statement: str, constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Yield products of an operand and a count, also with another term taken away or added."""
    if value.unit == "%":
        return
    terms = terms_of(value, operands)
    counts = [*_counts(value, operands), *constants]
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
            if is_result(value, product):
                yield formula, used
            if not of_time and _SHARED.search(statement) and is_result(value, factor.value.amount / number):
                yield f"{factor.value.text} / {words}", used
            if counted is None or not value.unit or not all(operand.is_stated for operand in used):
                continue
            for term in (term for term in terms if term.is_stated and term not in used):
                if _TELLS_DIFFERENCE.search(statement) and is_result(value, product - term.value.amount):
                    yield f"{formula} - {term.value.text}", (*used, term)
    if value.unit and value.precision.digits >= FEWEST_DIGITS:
        yield from _products_of_counts(value, terms, counts)
    if value.unit.isupper() and value.precision.digits > 1 and _TELLS_SUM.search(statement):
        # "A double" is no two of them, and "a year" is 12 months.
        meant = [each for each in counts if (each[2].is_stated if each[2] is not None else " " in each[1])]
        yield from _bills(value, terms, meant)


def _bills(value: Value, terms: Sequence[Operand], counts: Sequence[_Count]) -> Iterator[_Result]:
    """Yield sums of stated prices, each once or for a count: "29 euros a night, 3 for the dog and 4 for
    electricity" for three nights, "five hours at 4.20 euros and 60 km at 0.32 euros". Of few digits, of all
    prices that are stated before."""
    before = [term for term in terms if term.is_stated and term.value.start < value.start][-MOST_PRICES:]
    times = {number: (words, counted) for number, words, counted in reversed(counts)}
    chosen_times = [(1.0, "", None), *((number, *found) for number, found in times.items())][:MOST_TIMES]
    fewest = 2 if value.precision.digits >= FEWEST_DIGITS else max(len(before), 2)
    for size in range(fewest, len(before) + 1):
        for chosen in itertools.combinations(before, size):
            for each in itertools.product(chosen_times, repeat=size):
                total = sum(
                    term.value.amount * number for term, (number, _, _) in zip(chosen, each, strict=True)
                )
                if is_result(value, total):
                    words = (
                        f"{term.value.text} \u00d7 {times}" if times else term.value.text
                        for term, (_, times, _) in zip(chosen, each, strict=True)
                    )
                    yield (
                        " + ".join(words),
                        (*chosen, *(counted for _, _, counted in each if counted is not None)),
                    )


def _products_of_counts(
    value: Value, terms: Sequence[Operand], counts: Sequence[_Count]
) -> Iterator[_Result]:
    """Yield products of a price and two counts: "13 euros a week each", for 12 laptops and three weeks."""
    for factor in terms:
        for (first, one, _), (second, other, counted) in itertools.combinations(counts, 2):
            if first != second and is_result(value, factor.value.amount * first * second):
                used = (factor,) if counted is None else (factor, counted)
                yield f"{factor.value.text} \u00d7 {one} \u00d7 {other}", used


def _counted(
    value: Value, near: Sequence[Operand], operands: Sequence[Operand], constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Yield products of a value that only a passage has and a count: a stated one, or that of months in a
    year. Few digits are enough where the passage has the value each day, and days are counted."""
    digits = value.precision.digits
    for factor in terms_of(value, near):
        for number, words, counted in (*_counts(value, operands), *constants):
            is_rate = bool(factor.rate) and factor.rate in words.lower()
            is_long = digits >= FEWEST_DIGITS and (counted is not None or digits > FEWEST_DIGITS)
            if (is_rate or is_long) and is_result(value, factor.value.amount * number):
                used = (factor,) if counted is None else (factor, counted)
                yield f"{factor.value.text} \u00d7 {words}", used


def _compared(
    value: Value, near: Sequence[Operand], operands: Sequence[Operand], statement: str
) -> Iterator[_Result]:
    """Yield differences between a stated value and one that only its passage has."""
    if not COMPARED.search(statement) or value.precision.digits < 2:
        return
    for stated in (term for term in terms_of(value, operands) if term.passage is not None):
        for rival in (term for term in terms_of(value, near) if term.passage == stated.passage):
            if is_result(value, abs(rival.value.amount - stated.value.amount)):
                yield difference(stated.value, rival.value), (stated, rival)


def _counts(value: Value, operands: Sequence[Operand]) -> Iterator[_Count]:
    """Yield numbers of things, of units of time, and, for money, of whatever else has a price."""
    is_money = value.unit.isupper()
    for operand in operands:
        unit = operand.value.unit
        priced = is_money and unit != "%" and not unit.isupper()
        if operand.value.kind == "quantity" and (unit in ("", "second") or priced):
            number = operand.value.amount / operand.value.precision.factor
            if 1 < number <= LARGEST_COUNT:
                yield number, operand.value.text, operand


def _constants(value: Value, statement: str, question: str) -> list[_Count]:
    """Return the numbers that words stand for; no 12 months where the value is that of a month."""
    at = max(statement.find(value.text), 0)
    behind = at + len(value.text) + 20
    of_year = re.search(r"\b(?:year|annual)", statement[at:behind], re.IGNORECASE)
    of_month = not of_year and _OF_MONTH.search(statement, max(at - 30, 0), behind)
    return [
        (number, words, None)
        for pattern, numbers in _CONSTANTS
        if re.search(rf"\b(?:{pattern})\b", f"{question} {statement}", re.IGNORECASE)
        for number, words in numbers
        if not (of_month and number == 12)
    ]


def _percentages(value: Value, operands: Sequence[Operand], statement: str) -> Iterator[_Result]:
    quantities = of_kind("quantity", operands)
    less, more = LESS.search(statement), MORE.search(statement)
    is_difference = value.unit == "%" and _TELLS_DIFFERENCE.search(statement)
    for percentage in (operand for operand in quantities if operand.value.unit == "%"):
        if is_difference and is_result(value, 100 - percentage.value.amount):
            yield f"100 % - {percentage.value.text}", (percentage,)
        if value.unit in ("second", "%"):
            continue
        for base in terms_of(value, quantities):
            share = base.value.amount * percentage.value.amount / 100
            for words, amount, is_meant in (
                ("\u00d7", share, _SAVED.search(statement) if less else not more),
                ("+", base.value.amount + share, more),
                ("-", base.value.amount - share, less),
            ):
                if is_meant and is_result(value, amount):
                    yield f"{base.value.text} {words} {percentage.value.text}", (base, percentage)
    if value.unit == "%" and value.amount <= 100:
        plain = (operand for operand in quantities if operand.value.unit != "%")
        for dividend, divisor in itertools.permutations(plain, 2):
            amount = divisor.value.amount if comparable(dividend.value, divisor.value) else 0
            if amount and is_result(value, 100 * dividend.value.amount / amount):
                yield f"{dividend.value.text} / {divisor.value.text}", (dividend, divisor)


def _between(value: Value, operands: Sequence[Operand], statement: str) -> Iterator[_Result]:
    """Yield durations between two times, and years between two dates."""
    if value.unit != "second" or not telling(f"{_TOTAL}|{_APART}|lasts?|takes?|long").search(statement):
        return
    for later, earlier in itertools.permutations(of_kind("time", operands), 2):
        if is_result(value, (int(later.value.key[0] or 0) - int(earlier.value.key[0] or 0)) * MINUTES):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)
    for later, earlier in itertools.permutations(of_kind("date", operands), 2):
        year, before = later.value.key[0], earlier.value.key[0]
        years = year - before if isinstance(year, int) and isinstance(before, int) else 0
        if is_result(value, years * YEAR):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)


def _directions(statement: str) -> list[tuple[str, int]]:
    """Return the sign and the direction in time that a sentence tells of, if any."""
    if _BEFORE.search(statement):
        return [("-", -1)]
    return [("+", 1)] if _AFTER.search(statement) else []


def _moments(value: Value, operands: Sequence[Operand], statement: str) -> Iterator[_Result]:
    """Yield times, or dates, that lie a duration after another, or before it."""
    move = moved_time if value.kind == "time" else moved_date
    durations = [operand for operand in of_kind("quantity", operands) if operand.value.unit == "second"]
    for start in (operand for operand in of_kind(value.kind, operands) if not operand.value.unit):
        for duration in durations:
            for sign, way in _directions(statement):
                key = move(start.value, duration.value, way)
                if key is not None and agree(value, replace(start.value, key=key)):
                    yield f"{start.value.text} {sign} {duration.value.text}", (start, duration)
