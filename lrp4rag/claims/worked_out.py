"""Values of a response of which it states no operand, or one only, worked out from passages: "£285 per child,
10% less", "two years later", "all tickets are half price".

Each rule is a function that yields the words of an operation, such as "£11.50 \u00d7 half", and the passage
that has its operands. It asks for words that tell of the operation, in the passage or in the response: two
values of a passage give many others by chance.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.operands import (
    CALENDAR,
    COMPARED,
    DAY,
    LARGER,
    LESS,
    MORE,
    MOST_NEAR,
    PERSONS,
    SMALLER,
    TWO,
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
from lrp4rag.claims.places import Place
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.words import content_words

FEWEST_WORDS = 2
"""Words that a sentence has in common with a sentence, or passage, that tells its date."""
_PIECE = telling("apiece|each|an? piece")
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
_COUPLE = telling(TWO)
FEWEST_DIGITS = 3
"""Significant digits of a product that is not one by chance."""
_TOGETHER = telling("together|in all|altogether|in total|all told|combined|total(?:l?ing|s)?")
_LESS_BESIDE = telling("off|discount|rebate|minus|deduct\\w*|excess|lower|reduc\\w+|cheaper|less")
_MORE_BESIDE = telling(
    "plus|supplement|surcharge|extra|additional|on top|further|more|higher|add(?:s|ed)?|another"
)
"""Words beside a value of a passage by which another is lowered, or raised: "a supplement of £30"."""
_BESIDE = 30
"""Characters on both sides of a value in which they stand, in its clause."""
_BORDER = re.compile(r"[;,.()]")
_APART = re.compile(
    rf"\W*(?:[\w-]+ ){{0,2}}?(?:{COMPARED.pattern}|quicker|faster|slower|sooner|later|earlier|on top|apart"
    r"|above|below)\b",
    re.IGNORECASE,
)
_BY = re.compile(r"\b(?:by|gain|difference|gap|lead|margin)(?: \w+)? \Z", re.IGNORECASE)
"""Words behind a difference, and before it."""
_LEFT = telling("left|to spare|to go|remain\\w*")
_OF = re.compile(r"\bof (?:the |your |its |all )?", re.IGNORECASE)
_SHARE = re.compile(r"\b(?:half|halve[sd]?|third|quarters?)\b", re.IGNORECASE)
_PER = re.compile(r"\b(?:per|every|each) \Z", re.IGNORECASE)
_PER_UNIT = re.compile(r"\s*(?:per|an?|/)\s*([a-z]+)\b", re.IGNORECASE)
MOST_TIMES = 20
"""Times that an amount is needed, such as coats of paint."""
_MOVED = re.compile(r"\s*(?:(?P<earlier>before|earlier)|after|later)\b", re.IGNORECASE)
_LASTED = telling(
    "takes?|took|taken|last(?:ed|s)?|later|earlier|after(?:wards)?|before|for|until|spent|within|ago|old|in"
)


@dataclass(frozen=True)
class Case:
    """A `value` that is read with a `statement` of the response, the `question`, and the values that are
    known."""

    value: Value
    statement: str
    question: str
    operands: Sequence[Operand]
    index: Index

    @cached_property
    def words(self) -> frozenset[str]:
        """The content words of the statement."""
        return content_words(self.statement)

    @cached_property
    def told(self) -> frozenset[str]:
        """Those of the question too."""
        return self.words | content_words(self.question)

    @cached_property
    def asked(self) -> list[Value]:
        """The quantities of the question."""
        return [value for value in find_values(self.question) if value.kind == "quantity"]

    @cached_property
    def stated(self) -> list[Value]:
        """Those of the statement, and of the question."""
        return [*(value for value in find_values(self.statement) if value.kind == "quantity"), *self.asked]

    def states(self, *values: Value) -> bool:
        """Say whether one of some values is stated."""
        return any(agree(each, value) for each in self.stated for value in values)

    @cached_property
    def passages(self) -> list[tuple[int, list[Place]]]:
        """Each passage, by its number, with its places."""
        places = itertools.groupby(self.index.places, lambda place: place.passage)
        return [(passage, list(group)) for passage, group in places]


Worked = Iterator[tuple[str, int]]
"""Words that give a value, and the passage that has what they name."""


def worked_out(case: Case) -> Worked:
    """Yield what gives a value of which the response states no operand, or one only."""
    value, is_long = case.value, case.value.precision.digits > 1
    if value.kind == "date":
        yield from _told_dates(value, case.statement, case.index)
        yield from _moved(case)
    elif value.kind == "time":
        yield from _moved(case)
    elif value.unit.isupper():
        if is_long:
            yield from _prices(value, case.statement, case.index)
        yield from _shares(case)
    elif _may_be_age(value):
        if re.search(_AGE.format(re.escape(value.text)), case.statement, re.IGNORECASE):
            yield from _ages(value, case.operands, case.statement, case.index)
        yield from _years(case)
    if value.kind == "quantity" and not value.unit:
        yield from _portions(case)
    elif value.kind == "quantity" and value.unit != "%":
        yield from _by_rate(case)
        yield from _left(case)
    if value.kind == "quantity" and is_long:
        if value.unit not in ("", "second", "%") and COMPARED.search(case.statement):
            yield from _compared_with_named(value, case.operands, case.statement, case.index)
        yield from _adjusted(case)
        yield from _together(case)
        yield from _apart(case)
        yield from _rest(case)


def _quantities(places: Iterable[Place]) -> list[tuple[Value, Place]]:
    pairs = ((value, place) for place in places for value in place.values if value.kind == "quantity")
    return list(itertools.islice(pairs, MOST_NEAR))


def _shares(case: Case) -> Worked:
    """Yield shares of a price that its passage tells of: "half price", "over 66 pay three quarters"."""
    value = case.value
    if value.precision.digits < 2 and not _SHARE.search(case.statement):
        return
    for passage, places in case.passages:
        quantities, text = _quantities(places), case.index.texts[passage]
        for share, place in quantities:
            around = text[share.end : share.end + 40]
            is_part = share.unit == "%" and 0 < share.amount < 100 and case.told & place.words
            if is_part and not LESS.search(around) and not MORE.search(around):
                for price in (price for price, _ in quantities if price.unit == value.unit):
                    if is_result(value, price.amount * share.amount / 100):
                        yield f"{price.text} \u00d7 {share.text}", passage


def _adjusted(case: Case) -> Worked:
    """Yield a value less what its passage takes off, or with what it adds, where the response states one of
    them, or the question: "£58 and a supplement of £30", "£1,400 less the £100 excess". What has many digits
    is not given by chance: the record of 2:24:07 that somebody missed in 2:24:18 "by 11 seconds"."""
    value, is_evident = case.value, case.value.precision.digits > FEWEST_DIGITS
    asked = [each for each in case.asked if comparable(each, value)]
    for passage, places in case.passages if value.unit not in ("", "%") else ():
        near = [pair for pair in _quantities(places) if comparable(pair[0], value)]
        for by, place in near:
            either = is_evident and _BY.search(place.text[: by.start - place.start])
            less, more = (
                either or pattern.search(_beside(by, place)) for pattern in (_LESS_BESIDE, _MORE_BESIDE)
            )
            for base in [*asked, *(each for each, _ in near)] if less or more else ():
                is_sum = more and is_result(value, base.amount + by.amount)
                is_rest = less and is_result(value, base.amount - by.amount)
                if (is_sum or is_rest) and not agree(base, by) and (either or case.states(base, by)):
                    yield f"{base.text} {'+' if is_sum else '-'} {by.text}", passage


def _beside(value: Value, place: Place) -> str:
    """Return what stands beside a value in its clause."""
    start, end = value.start - place.start, value.end - place.start
    before = _BORDER.split(place.text[max(start - _BESIDE, 0) : start])[-1]
    return f"{before} {_BORDER.split(place.text[end : end + _BESIDE])[0]}"


def _together(case: Case) -> Worked:
    """Yield sums of two values that a passage has side by side, where the response says that it is one: "20
    minutes at 240 °C, then 35 at 200 °C", "55 minutes in all"."""
    value = case.value
    for passage, places in case.passages if _TOGETHER.search(case.statement) else ():
        for number, place in enumerate(places):
            near = [each for each, _ in _quantities(places[number : number + 2]) if comparable(each, value)]
            for first, second in itertools.combinations(near, 2) if case.words & place.words else ():
                if is_result(value, first.amount + second.amount):
                    yield f"{first.text} + {second.text}", passage


def _apart(case: Case) -> Worked:
    """Yield differences between two values that a passage has side by side, where the response compares."""
    value, at = case.value, case.statement.find(case.value.text)
    behind = _APART.match(case.statement, at + len(value.text))
    if not behind and not _BY.search(case.statement, max(at - _BESIDE, 0), at):
        return
    for passage, places in case.passages:
        for number, place in enumerate(places):
            here, near = (
                [each for each, _ in _quantities(places[number:end]) if comparable(each, value)]
                for end in (number + 1, number + 2)
            )
            pairs = itertools.product(here, near) if case.words & place.words else iter(())
            for first, second in sorted(pairs, key=lambda pair: abs(pair[0].start - pair[1].start)):
                if is_result(value, abs(first.amount - second.amount)):
                    yield difference(first, second), passage


def _rest(case: Case) -> Worked:
    """Yield what is left of a whole that the response names as one: "of the 212, 194 finished"."""
    value = case.value
    for passage, places in case.passages if _OF.search(case.statement) else ():
        near = [each for each, _ in _quantities(places) if comparable(each, value)]
        for whole in near:
            number = re.escape(whole.text.split()[0])
            if re.search(rf"{_OF.pattern}{number}\b", case.statement, re.IGNORECASE):
                for part in near:
                    if is_result(value, whole.amount - part.amount):
                        yield difference(whole, part), passage


def _left(case: Case) -> Worked:
    """Yield what is left to the asker of what a passage gives: 20 of 60 days, where 40 have passed."""
    value = case.value
    for passage, places in case.passages if _LEFT.search(case.statement) else ():
        for whole, place in _quantities(places):
            for part in case.asked if comparable(whole, value) and case.told & place.words else ():
                if comparable(part, value) and is_result(value, whole.amount - part.amount):
                    yield f"{whole.text} - {part.text}", passage


def _portions(case: Case) -> Worked:
    """Yield counts of which there is one for so many things: "one adult for every six pupils"."""
    counts = [each for each in case.stated if not each.unit and each.noun]
    for passage, places in case.passages if counts else ():
        for size, place in _quantities(places):
            text = place.text[: size.start - place.start]
            if size.unit or size.amount <= 1 or not size.noun or not _PER.search(text):
                continue
            for count in counts:
                is_alike = content_words(count.noun) & content_words(size.noun)
                number = math.ceil(count.amount / size.amount)
                if is_alike and count.amount > size.amount and number == case.value.amount:
                    yield f"{count.text} / {size.text}", passage


def _by_rate(case: Case) -> Worked:
    """Yield what a rate of a passage gives for so much, once or often: "7.5 m² per litre" for 30 m² and two
    coats."""
    value = case.value
    counts = {1.0, *(each.amount for each in case.stated if not each.unit and each.amount <= MOST_TIMES)}
    for passage, places in case.passages:
        for rate, place in _quantities(places):
            match = _PER_UNIT.match(place.text, rate.end - place.start)
            (each, *_) = find_values(f"1 {match[1]}") if match and rate.unit and rate.amount > 0 else (None,)
            if each is None or each.kind != "quantity" or each.unit != value.unit or rate.unit == value.unit:
                continue
            for whole in (whole for whole in case.stated if whole.unit == rate.unit):
                for count in counts:
                    if is_result(value, whole.amount * count / rate.amount * each.amount):
                        times = f" \u00d7 {count:g}" if count > 1 else ""
                        yield f"{whole.text}{times} / {rate.text}", passage


def _moved(case: Case) -> Worked:
    """Yield times and dates that a passage tells from another: "last admission is 45 minutes before closing",
    "six weeks before the end"."""
    value, move = case.value, moved_time if case.value.kind == "time" else moved_date
    known = [(each.value, each.passage) for each in of_kind(value.kind, case.operands)]
    for passage, places in case.passages:
        near = [(each, passage) for place in places for each in place.values if each.kind == value.kind]
        for by, place in _quantities(places):
            match = _MOVED.match(place.text, by.end - place.start)
            is_short = (
                by.unit == "second" and by.precision.factor < 12 * CALENDAR
            )  # of years: see _told_dates
            if match is None or not is_short or not case.words & place.words:
                continue
            way = -1 if match["earlier"] else 1
            for start, _ in [*near, *known]:
                key = None if start.unit else move(start, by, way)
                if key is not None and agree(value, replace(start, key=key)):
                    yield f"{start.text} {'-' if way < 0 else '+'} {by.text}", passage


def _years(case: Case) -> Worked:
    """Yield the years between two that a passage has in a sentence, or in two: "it took some five years"."""
    value = case.value
    if value.unit != "second" or value.precision.factor > 400 * DAY or not _LASTED.search(case.statement):
        return
    for passage, places in case.passages:
        for number, place in enumerate(places):
            around = places[max(number - 1, 0) : number + 1] if case.words & place.words else []
            dates = [each for other in around for each in other.values if each.kind == "date"]
            years = [each.key[0] for each in dates if isinstance(each.key[0], int)]
            for first, second in itertools.combinations(years, 2):
                if abs(first - second) == value.amount / value.precision.factor:
                    yield f"{max(first, second)} - {min(first, second)}", passage


def _prices(value: Value, statement: str, index: Index) -> Worked:
    """Yield prices of a piece of a pack, of two persons, and with a passage's discount or surcharge."""
    is_long = value.precision.digits >= FEWEST_DIGITS
    less, more = is_long and LESS.search(statement), is_long and MORE.search(statement)
    piece, couple = _PIECE.search(statement), _COUPLE.search(statement)
    if not (less or more or piece or couple):
        return
    words = content_words(statement)
    persons = {word.lower() for word in re.findall(rf"\b(?:{PERSONS})", statement, re.IGNORECASE)}
    for passage, group in itertools.groupby(index.places, lambda place: place.passage):
        places, text = list(group), index.texts[passage]
        values = [each for place in places for each in place.values if each.kind == "quantity"][:MOST_NEAR]
        prices = [each for each in values if each.unit == value.unit]
        for price in prices if couple else ():
            rate = rate_of(text, price)
            is_meant = rate in PERSONS.split("|") and persons <= {rate}
            if is_meant and is_result(value, 2 * price.amount):
                yield f"{price.text} \u00d7 2", passage
        if not (less or more or piece) or not any(words & place.words for place in places):
            continue
        for other in values:
            before = [price for price in prices if price.end <= other.start]
            behind = [price for price in prices if price.start >= other.end]
            if (
                piece
                and behind
                and _is_pack(text, other)
                and is_result(value, behind[0].amount / other.amount)
            ):
                yield f"{behind[0].text} / {other.text}", passage
            if other.unit == "%" and prices:
                price = before[-1] if before else behind[0]
                share, around = price.amount * other.amount / 100, text[other.end : other.end + 40]
                if less and LESS.search(around) and is_result(value, price.amount - share):
                    yield f"{price.text} - {other.text}", passage
                if more and MORE.search(around) and is_result(value, price.amount + share):
                    yield f"{price.text} + {other.text}", passage


def _is_pack(text: str, count: Value) -> bool:
    is_count = not count.unit and count.amount > 1
    return is_count and _PACK.search(text[max(count.start - 20, 0) : count.start]) is not None


def _told_dates(value: Value, statement: str, index: Index) -> Worked:
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
    return not value.unit or (value.unit == "second" and value.precision.factor > 12 * CALENDAR)


def _ages(value: Value, operands: Sequence[Operand], statement: str, index: Index) -> Worked:
    """Yield the dates of a birth from which an age follows in a stated year, unless somebody is named whom
    its passage does not know, or it tells of several births."""
    stated = [operand.value for operand in of_kind("date", operands) if operand.is_stated]
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


def _compared_with_named(value: Value, operands: Sequence[Operand], statement: str, index: Index) -> Worked:
    """Yield differences between a stated value and that of another passage's thing, which the sentence
    names."""
    named = {name.text for name in find_values(statement) if name.kind == "name"}
    larger, smaller = LARGER.search(statement), SMALLER.search(statement)
    for stated in (term for term in terms_of(value, operands) if term.is_stated and term.passage is not None):
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
                if by and is_meant and is_result(value, abs(by)):
                    yield difference(stated.value, rival), place.passage
