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
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place
from lrp4rag.claims.value import Key, Kind, Value, agree, comparable
from lrp4rag.claims.words import content_words

KINDS = ("quantity", "time", "date")
MOST_VALUES = 30
"""Values of a text that are looked at, the last ones: a result stands behind its operands."""
LOOKED_BACK = 2_000
"""Characters before a sentence in which they are looked for."""
_BORDER = re.compile(r"(?<=[.!?])\s+|\n+")
MOST_NEAR = 100
"""Values of a passage that are looked at, the first ones."""
MOST_TERMS = 5
"""Terms of a sum."""
MOST_OPERANDS = 12
"""Operands that are tried, those of the sentence itself first."""
LARGEST_COUNT = 1_000_000
FEWEST_WORDS = 2
"""Words that a sentence has in common with a sentence, or passage, that tells its date."""
FEWEST_DIGITS = 3
"""Significant digits of a product that is not one by chance."""
SMALL = 10
"""Plain counts below this are sums of others by chance."""
EXACT, ROUNDED = 1e-4, 0.01
"""Relative differences of amounts that are the same, and of one that is rounded, at most."""
_MINUTES, _DAY, _LARGEST = 60.0, 86400.0, 1e6
_CALENDAR = 28 * _DAY
"""The shortest unit of the calendar whose length varies: a month."""
_TWO = "both|couple|twins|two of (?:us|you)"
_CONSTANTS = (
    (r"years?|yearly|annual(?:ly)?|per annum", ((12, "12 months"), (52, "52 weeks"), (365, "365 days"))),
    (r"weeks?|weekly", ((7, "7 days"),)),
    (rf"double|twice|return|round trip|there and back|each way|{_TWO}", ((2, "2"),)),
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
    r"left|leaves|remain\w*|another|still|more|less|fewer|difference|sav(?:e|es|ing)|minus|cheaper|dearer|longer"
    r"|shorter|older|younger|heavier|lighter|taller|higher|lower|later|earlier|years? (?:old|ago)|aged"
)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b|=", re.IGNORECASE)


# Words that tell of an operation: values are sums and differences of others by chance too.
_TELLS_SUM, _TELLS_DIFFERENCE = _words(_TOTAL), _words(f"{_APART}|so|(?:that|which) is")
_TELLS_PRODUCT = _words(f"{_TOTAL}|times|each|per|every|apiece")
_OF_MONTH = re.compile(r"\b(?:(?:a|per|each|every) month|monthly)\b", re.IGNORECASE)
_PERSONS = "child|person|head|adult|pupil|guest|passenger"
_EACH = re.compile(
    rf"\s*(?:an?|per|each|every|/)\s*(night|day|week|month|year|hour|minute|{_PERSONS})\b", re.IGNORECASE
)
_PIECE = _words("apiece|each|an? piece")
_PACK = re.compile(
    r"\b(?:packs?|packets?|sets?|box(?:es)?|bundles?|strips?|books?|blocks?) of \Z", re.IGNORECASE
)
_LATER = re.compile(
    r"(?<!half )(?<!than )(?<!within )(?<!over )(?<!nearly )(?<!almost )\b"
    r"(?:(?:the )?(?:following|next) year|(?:a|one) year later"
    r"|(?P<number>years) (?:later|earlier|before(?=\W*\Z))"
    r"|the previous year|(?:a|one) year earlier|(?:the|a) year (?:after|before)(?=\s*[.,;)]|\Z))(?!\w)",
    re.IGNORECASE,
)
"""By which a passage tells a year from the one that it named before."""
_INEXACT = re.compile(
    r"\b(?:half|(?:less|more|fewer) than|within|over|under|almost|nearly|up to|about)\s*\Z", re.I
)
"""Before a number of years that is none."""
_CLAUSE = re.compile(r"[,;:]|\band\b")
_YEAR_S_END = re.compile(
    r"\b(?:the )?end of (?:the|each|every|a) (?:calendar |current )?year\b", re.IGNORECASE
)
_AGE = r"\b(?:aged?|turned|when (?:\w+ )?(?:was|were)) {0}\b|\b{0}(?:[- ]years?)?[- ]old\b"
_BORN = re.compile(r"(?:\bborn\b[^.,;()\d]*|\(b\. |\()\Z", re.IGNORECASE)
_UNTIL = re.compile(r"\s*[-\u2010-\u2015]")
"""Before the date of somebody's birth, and behind it where nothing says "born"."""
_COUPLE = _words(_TWO)
_LARGER = _words("dearer|more|longer|extra|taller|higher|older|heavier|bigger|larger")
_SMALLER = _words("cheaper|less|fewer|shorter|saves?|saving|lower|younger|lighter|smaller")
_COMPARED = re.compile(rf"{_LARGER.pattern}|{_SMALLER.pattern}|\bdifference\b", re.IGNORECASE)
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
    months", and the passage (an index) that has one of its operands, or of which the value is said."""

    value: Value
    words: str
    passage: int


@dataclass(frozen=True, slots=True)
class _Operand:
    """A known value, and the passage that has it, or a value that it was derived from; None where only the
    question has it. `is_stated` tells that the sentence itself has it; `rate` is the unit for each of which
    the passage has it, such as "day"."""

    value: Value
    passage: int | None
    is_stated: bool = False
    rate: str = ""


_Result = tuple[str, tuple[_Operand, ...]]


def derivations(
    response: str, sentence: tuple[int, int], question: str, index: Index
) -> tuple[Derivation, ...]:
    """Derive the values of a sentence (its characters) that no passage has from other values of the response
    up to its end, and of the question."""
    first, text = _up_to(response, sentence)
    sentence = sentence[0] - first, sentence[1] - first
    question_values = _values(question)
    operands, unknown = list[_Operand](), list[Value]()
    for value in _values(text):
        sources = _operands_of(value, index)
        if not sources and any(agree(value, question_value) for question_value in question_values):
            sources = [_Operand(value, None)]
        operands += [replace(source, is_stated=value.start >= sentence[0]) for source in sources]
        if not any(source.value is value for source in sources):
            unknown.append(value)
    for value in question_values:
        operands += _operands_of(value, index) or [_Operand(value, None)]
    derived = list[Derivation]()
    passages = {operand.passage for operand in operands}
    if any(_HALF.search(index.texts[number]) for number in passages if number is not None):
        question = f"{question} half"
    near = _distinct(
        [
            _Operand(value, place.passage, rate=_rate(index.texts[place.passage], value))
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
                for words, passage in _worked_out(value, operands, statement, index):
                    return Derivation(value, words, passage)
        return None

    def next_derivation() -> Derivation | None:
        return _next(unknown, operands, near, text, sentence, question) or next_worked_out()

    while (derivation := next_derivation()) is not None:
        value = derivation.value
        unknown.remove(value)
        operands.insert(0, _Operand(value, derivation.passage, value.start >= sentence[0]))
        derived.append(derivation)
    return tuple(
        replace(derivation, value=derivation.value.shifted(first))
        for derivation in derived
        if sentence[0] <= derivation.value.start
    )


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


def _rate(text: str, value: Value) -> str:
    """Return the unit for each of which a passage has a value: "day" of "9 euros a day"; "" for none."""
    match = _EACH.match(text, value.end)
    return match[1].lower() if match else ""


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
        return first != second and (first < _CALENDAR) == (second < _CALENDAR) and _is(value, source.amount)
    letters = ("".join(filter(str.isalnum, side.text.casefold())) for side in (value, source))
    return value.key == source.key and len(set(letters)) == 2


def _values(text: str) -> list[Value]:
    """Return the last values of a text that may be derived, or that others are derived from."""
    return [value for value in find_values(text) if value.kind in KINDS][-MOST_VALUES:]


def _operands_of(value: Value, index: Index) -> list[_Operand]:
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
            return [_Operand(value, passage)]
    if value.kind != "quantity" or value.unit or value.noun:
        return []
    by_unit = dict[str, _Operand]()
    for candidate, passage in candidates:
        unit, amount = candidate.unit, value.amount * candidate.precision.factor
        if unit not in ("", "second", "%") and candidate.amount == amount:
            by_unit.setdefault(unit, _Operand(candidate, passage))
    return list(by_unit.values())


def _next(
    unknown: Sequence[Value],
    operands: Sequence[_Operand],
    near: Sequence[_Operand],
    text: str,
    sentence: tuple[int, int],
    question: str,
) -> Derivation | None:
    distinct = _distinct(operands)
    for value in unknown:
        statement = _statement(value, text, sentence)
        if value.kind == "quantity" and not value.unit and value.amount < SMALL:
            continue
        for words, used in _ways(value, distinct, near, statement, question):
            passages = [operand.passage for operand in used if operand.passage is not None]
            if passages:
                return Derivation(value, words, passages[0])
    return None


def _distinct(operands: Sequence[_Operand]) -> list[_Operand]:
    """Return each operand once: a number that is written again is no further term."""
    distinct = dict[tuple[object, ...], _Operand]()
    for operand in operands:
        value = operand.value
        if value.kind != "quantity" or value.unit or value.amount > 1:
            amount = (value.amount, value.precision.factor) if value.kind == "quantity" else ()
            key = (value.kind, value.unit, value.key, *amount)
            distinct.setdefault(key, operand)
    return sorted(distinct.values(), key=lambda operand: not operand.is_stated)[:MOST_OPERANDS]


def _ways(
    value: Value, operands: Sequence[_Operand], near: Sequence[_Operand], statement: str, question: str
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


def _sums(value: Value, operands: Sequence[_Operand], statement: str, question: str) -> Iterator[_Result]:
    terms = _terms(value, operands)
    if _TELLS_DIFFERENCE.search(f"{question} {statement}"):
        for minuend, subtrahend in itertools.permutations(terms, 2):
            if _is(value, minuend.value.amount - subtrahend.value.amount):
                yield f"{minuend.value.text} - {subtrahend.value.text}", (minuend, subtrahend)
    tells = _TELLS_SUM.search(statement) or f"{value.text}:" in statement
    if tells and not re.search(r"\b(?:left|leaves|remain\w*)\b", statement, re.IGNORECASE):
        for size in range(2, min(len(terms), MOST_TERMS) + 1):
            for chosen in itertools.combinations(terms, size):
                if _is(value, sum(term.value.amount for term in chosen)):
                    yield " + ".join(term.value.text for term in chosen), chosen


def _terms(value: Value, operands: Sequence[_Operand]) -> list[_Operand]:
    """Return the operands of a value's kind and dimension."""
    return [operand for operand in operands if comparable(value, operand.value)]


_Count = tuple[float, str, "_Operand | None"]


def _products(
    value: Value, operands: Sequence[_Operand], statement: str, constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Yield products of an operand and a count, also with another term added or taken away: "19 pence a
    minute and 1 pound"."""
    if value.unit == "%":
        return
    terms = _terms(value, operands)
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
            if _is(value, product):
                yield formula, used
            if not of_time and _SHARED.search(statement) and _is(value, factor.value.amount / number):
                yield f"{factor.value.text} / {words}", used
            if counted is None or not value.unit or not all(operand.is_stated for operand in used):
                continue
            for term in (term for term in terms if term.is_stated and term not in used):
                for sign, way, tells in (("+", 1, _TELLS_SUM), ("-", -1, _TELLS_DIFFERENCE)):
                    if tells.search(statement) and _is(value, product + way * term.value.amount):
                        yield f"{formula} {sign} {term.value.text}", (*used, term)
    if value.unit and value.precision.digits >= FEWEST_DIGITS:
        yield from _products_of_sums(value, [term for term in terms if term.is_stated], counts)


def _products_of_sums(value: Value, terms: Sequence[_Operand], counts: Sequence[_Count]) -> Iterator[_Result]:
    """Yield products of a sum and a count: "29 euros a night, 3 for the dog and 4 for electricity" for three
    nights."""
    for size in range(2, min(len(terms), MOST_TERMS) + 1):
        for chosen in itertools.combinations(terms, size):
            total = sum(term.value.amount for term in chosen)
            for number, words, counted in counts:
                if counted not in chosen and _is(value, total * number):
                    formula = " + ".join(term.value.text for term in chosen)
                    yield f"({formula}) \u00d7 {words}", chosen if counted is None else (*chosen, counted)


def _counted(
    value: Value, near: Sequence[_Operand], operands: Sequence[_Operand], constants: Sequence[_Count]
) -> Iterator[_Result]:
    """Yield products of a value that only a passage has and a count: a stated one, or that of months in a
    year. Few digits are enough where the passage has the value each day, and days are counted."""
    digits = value.precision.digits
    for factor in _terms(value, near):
        for number, words, counted in (*_counts(value, operands), *constants):
            is_rate = bool(factor.rate) and factor.rate in words.lower()
            is_long = digits >= FEWEST_DIGITS and (counted is not None or digits > FEWEST_DIGITS)
            if (is_rate or is_long) and _is(value, factor.value.amount * number):
                used = (factor,) if counted is None else (factor, counted)
                yield f"{factor.value.text} \u00d7 {words}", used


def _compared(
    value: Value, near: Sequence[_Operand], operands: Sequence[_Operand], statement: str
) -> Iterator[_Result]:
    """Yield differences between a stated value and one that only its passage has."""
    if not _COMPARED.search(statement) or value.precision.digits < 2:
        return
    for stated in (term for term in _terms(value, operands) if term.passage is not None):
        for rival in (term for term in _terms(value, near) if term.passage == stated.passage):
            if _is(value, abs(rival.value.amount - stated.value.amount)):
                yield _difference(stated.value, rival.value), (stated, rival)


def _difference(*values: Value) -> str:
    return " - ".join(value.text for value in sorted(values, key=lambda value: -value.amount))


_Worked = Iterator[tuple[str, int]]
"""Words that give a value, and the passage that has what they name."""


def _worked_out(value: Value, operands: Sequence[_Operand], statement: str, index: Index) -> _Worked:
    """Yield what gives a value of which the response states no operand, or one only: of one passage, or of
    another thing's that the sentence names."""
    if value.kind == "date":
        yield from _told_dates(value, statement, index)
    elif value.unit.isupper() and value.precision.digits > 1:
        yield from _prices(value, statement, index)
    elif re.search(_AGE.format(re.escape(value.text)), statement, re.IGNORECASE) and _may_be_age(value):
        yield from _ages(value, operands, statement, index)
    if value.unit not in ("", "second", "%") and value.precision.digits > 1 and _COMPARED.search(statement):
        yield from _compared_with_named(value, operands, statement, index)


def _prices(value: Value, statement: str, index: Index) -> _Worked:
    """Yield prices of a piece of a pack, of two persons, and with a passage's discount or surcharge."""
    is_long = value.precision.digits >= FEWEST_DIGITS
    less, more = is_long and _LESS.search(statement), is_long and _MORE.search(statement)
    piece, couple = _PIECE.search(statement), _COUPLE.search(statement)
    if not (less or more or piece or couple):
        return
    words = content_words(statement)
    persons = {word.lower() for word in re.findall(rf"\b(?:{_PERSONS})", statement, re.IGNORECASE)}
    for passage, group in itertools.groupby(index.places, lambda place: place.passage):
        places, text = list(group), index.texts[passage]
        values = [each for place in places for each in place.values if each.kind == "quantity"][:MOST_NEAR]
        prices = [each for each in values if each.unit == value.unit]
        for price in prices if couple else ():
            rate = _rate(text, price)
            is_meant = rate in _PERSONS.split("|") and persons <= {rate}
            if is_meant and _is(value, 2 * price.amount):
                yield f"{price.text} \u00d7 2", passage
        if not (less or more or piece) or not any(words & place.words for place in places):
            continue
        for other in values:
            before = [price for price in prices if price.end <= other.start]
            behind = [price for price in prices if price.start >= other.end]
            if piece and behind and _is_pack(text, other) and _is(value, behind[0].amount / other.amount):
                yield f"{behind[0].text} / {other.text}", passage
            if other.unit == "%" and prices:
                price = before[-1] if before else behind[0]
                share, around = price.amount * other.amount / 100, text[other.end : other.end + 40]
                if less and _LESS.search(around) and _is(value, price.amount - share):
                    yield f"{price.text} - {other.text}", passage
                if more and _MORE.search(around) and _is(value, price.amount + share):
                    yield f"{price.text} + {other.text}", passage


def _is_pack(text: str, count: Value) -> bool:
    is_count = not count.unit and count.amount > 1
    return is_count and _PACK.search(text[max(count.start - 20, 0) : count.start]) is not None


def _told_dates(value: Value, statement: str, index: Index) -> _Worked:
    """Yield what tells of a date: "a flood in 1911 ... rebuilt the following year", "the end of the year"."""
    if value.unit:
        return
    words = content_words(statement)
    last: int | None = None  # the year that was named last
    for number, place in enumerate(index.places):
        if not number or index.places[number - 1].passage != place.passage:
            last = None
        end = _YEAR_S_END.search(place.text) if value.key[:3] == (None, 12, 31) else None
        if end and len(words & content_words(index.texts[place.passage])) >= FEWEST_WORDS:
            yield end[0], place.passage
        years = [(each.end, each.key[0]) for each in place.values if each.kind == "date"]
        named = [(end, year) for end, year in years if isinstance(year, int)]
        for match in _LATER.finditer(place.text):
            start = place.start + match.start()
            year = next((year for end, year in reversed(named) if end <= start), last)
            told, by = _told(match, place)
            clause = f"{_CLAUSE.split(place.text[max(match.start() - 200, 0) : match.start()])[-1]} "
            clause += _CLAUSE.split(place.text[match.end() : match.end() + 200])[0]
            is_about = len(words & place.words) >= FEWEST_WORDS or words & content_words(clause)
            if year is not None and by and is_about and value.key[:3] == (year + by, None, None):
                yield f"{year}, {told}", place.passage
        last = named[-1][1] if named else last


def _told(match: re.Match[str], place: Place) -> tuple[str, float]:
    """Return the words by which a place tells a year, and by how many years it is later; 0 for unknown."""
    way = -1 if re.search("previous|before|earlier", match[0], re.IGNORECASE) else 1
    if not match["number"]:
        return match[0], way
    start = place.start + match.start()
    for value in place.values:
        is_exact = not _INEXACT.search(place.text[: value.start - place.start])
        if value.start < start < value.end and value.unit == "second" and is_exact:
            return f"{value.text}{match[0][len('years') :]}", way * value.amount / value.precision.factor
    return "", 0


def _may_be_age(value: Value) -> bool:
    """Say whether a quantity is a plain number, or one of years."""
    return not value.unit or (value.unit == "second" and value.precision.factor > 12 * _CALENDAR)


def _ages(value: Value, operands: Sequence[_Operand], statement: str, index: Index) -> _Worked:
    """Yield the dates of a birth from which an age follows in a stated year, unless somebody is named whom
    its passage does not know, or it tells of several births."""
    stated = [operand.value for operand in _of_kind("date", operands) if operand.is_stated]
    names = [each.text for each in find_values(statement) if each.kind == "name" and " " in each.text]
    births = [
        (birth, place.passage)
        for place in index.places
        for birth in place.values
        if birth.kind == "date" and isinstance(birth.key[0], int) and _is_birth(birth, place)
    ]
    age = value.amount / value.precision.factor
    for birth, passage in births:
        is_only = sum(where == passage for _, where in births) == 1
        if not is_only or not all(name in index.texts[passage] for name in names):
            continue
        for moment in stated:
            year, day, birthday = moment.key[0], _day_of_year(moment), _day_of_year(birth)
            if isinstance(year, int):
                full = year - int(birth.key[0] or 0)
                ages = (full - (day < birthday),) if day and birthday else (full, full - 1)
                if age in ages:
                    yield f"{moment.text} - {birth.text}", passage


def _day_of_year(moment: Value) -> tuple[int, int] | None:
    """Return the month and the day of a date; None where it has not both."""
    month, day = moment.key[1:3]
    return (month, day) if isinstance(month, int) and isinstance(day, int) else None


def _is_birth(birth: Value, place: Place) -> bool:
    born = _BORN.search(place.text[: birth.start - place.start])
    is_range = _UNTIL.match(place.text[birth.end - place.start :])
    return born is not None and (born[0] != "(" or is_range is not None)


def _compared_with_named(value: Value, operands: Sequence[_Operand], statement: str, index: Index) -> _Worked:
    """Yield differences between a stated value and that of another passage's thing, which the sentence
    names."""
    named = {name.text for name in find_values(statement) if name.kind == "name"}
    larger, smaller = _LARGER.search(statement), _SMALLER.search(statement)
    for stated in (term for term in _terms(value, operands) if term.is_stated and term.passage is not None):
        own = index.texts[stated.passage or 0]
        for number, place in enumerate(index.places):
            around = (
                each
                for each in index.places[max(number - 1, 0) : number + 1]
                if each.passage == place.passage
            )
            names = {value.text for each in around for value in each.values if value.kind == "name"}
            if not any(name not in own for name in names & named):
                continue
            for rival in place.values:
                by = stated.value.amount - rival.amount if comparable(value, rival) else 0.0
                is_meant = (by > 0 or not larger or smaller) and (by < 0 or not smaller or larger)
                if by and is_meant and _is(value, abs(by)):
                    yield _difference(stated.value, rival), place.passage


def _counts(value: Value, operands: Sequence[_Operand]) -> Iterator[_Count]:
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


def _percentages(value: Value, operands: Sequence[_Operand], statement: str) -> Iterator[_Result]:
    quantities = _of_kind("quantity", operands)
    less, more = _LESS.search(statement), _MORE.search(statement)
    is_difference = value.unit == "%" and _TELLS_DIFFERENCE.search(statement)
    for percentage in (operand for operand in quantities if operand.value.unit == "%"):
        if is_difference and _is(value, 100 - percentage.value.amount):
            yield f"100 % - {percentage.value.text}", (percentage,)
        if value.unit in ("second", "%"):
            continue
        for base in _terms(value, quantities):
            share = base.value.amount * percentage.value.amount / 100
            for words, amount, is_meant in (
                ("\u00d7", share, _SAVED.search(statement) if less else not more),
                ("+", base.value.amount + share, more),
                ("-", base.value.amount - share, less),
            ):
                if is_meant and _is(value, amount):
                    yield f"{base.value.text} {words} {percentage.value.text}", (base, percentage)
    if value.unit == "%" and value.amount <= 100:
        plain = (operand for operand in quantities if operand.value.unit != "%")
        for dividend, divisor in itertools.permutations(plain, 2):
            amount = divisor.value.amount if comparable(dividend.value, divisor.value) else 0
            if amount and _is(value, 100 * dividend.value.amount / amount):
                yield f"{dividend.value.text} / {divisor.value.text}", (dividend, divisor)


def _between(value: Value, operands: Sequence[_Operand], statement: str) -> Iterator[_Result]:
    """Yield durations between two times, and years between two dates."""
    if value.unit != "second" or not _words(f"{_TOTAL}|{_APART}|lasts?|takes?|long").search(statement):
        return
    for later, earlier in itertools.permutations(_of_kind("time", operands), 2):
        if _is(value, (int(later.value.key[0] or 0) - int(earlier.value.key[0] or 0)) * _MINUTES):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)
    for later, earlier in itertools.permutations(_of_kind("date", operands), 2):
        year, before = later.value.key[0], earlier.value.key[0]
        years = year - before if isinstance(year, int) and isinstance(before, int) else 0
        if _is(value, years * 365.25 * _DAY):
            yield f"{later.value.text} - {earlier.value.text}", (later, earlier)


def _of_kind(kind: Kind, operands: Sequence[_Operand]) -> list[_Operand]:
    return [operand for operand in operands if operand.value.kind == kind]


def _directions(statement: str) -> list[tuple[str, int]]:
    """Return the sign and the direction in time that a sentence tells of, if any."""
    if _BEFORE.search(statement):
        return [("-", -1)]
    return [("+", 1)] if _AFTER.search(statement) else []


def _moments(value: Value, operands: Sequence[_Operand], statement: str) -> Iterator[_Result]:
    """Yield times, or dates, that lie a duration after another, or before it."""
    move = _moved_time if value.kind == "time" else _moved_date
    durations = [operand for operand in _of_kind("quantity", operands) if operand.value.unit == "second"]
    for start in (operand for operand in _of_kind(value.kind, operands) if not operand.value.unit):
        for duration in durations:
            for sign, way in _directions(statement):
                key = move(start.value, duration.value, way)
                if key is not None and agree(value, replace(start.value, key=key)):
                    yield f"{start.value.text} {sign} {duration.value.text}", (start, duration)


def _moved_time(value: Value, duration: Value, way: int) -> Key | None:
    """Return the key of a time of the day a duration later or earlier; None if that is no whole minute."""
    minutes = int(value.key[0] or 0) + way * duration.amount / _MINUTES
    is_whole = abs(minutes) < _LARGEST and minutes == round(minutes)
    return (round(minutes) % 1440, *value.key[1:]) if is_whole else None


def _moved_date(value: Value, duration: Value, way: int) -> Key | None:
    """Return the key of a date a number of days, weeks, months or years later or earlier; None where it lacks
    the year, the month or the day that this needs."""
    year, month, day, *_ = value.key
    number, unit = way * duration.amount / duration.precision.factor, round(duration.precision.factor / _DAY)
    if abs(number) > _LARGEST or number != round(number):
        return None
    any_year = year if isinstance(year, int) else 2001
    moved: tuple[int, int | str | None, int | str | None]
    if unit in (365, 366) and isinstance(year, int):
        return year + int(number), month, day, None
    if unit in (30, 31) and isinstance(month, int):
        months = any_year * 12 + month - 1 + int(number)
        moved_year, moved_month = months // 12, months % 12 + 1
        if not 1 <= moved_year <= 9999:
            return None
        last = monthrange(moved_year, moved_month)[1]
        moved = moved_year, moved_month, min(day, last) if isinstance(day, int) else day
    elif unit in (1, 7) and isinstance(month, int) and isinstance(day, int):
        try:
            later = date(any_year, month, day) + timedelta(days=unit * number)
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
