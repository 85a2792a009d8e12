"""The time that a question asks for, where that is not the present: "as of 2022", "what was the limit in
March 2020?", "the previous version"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from lrp4rag.claims.dates import MONTHS, find_dates
from lrp4rag.claims.units import MONEY, UNITS
from lrp4rag.claims.value import Value
from lrp4rag.claims.written import SMALL_NUMBERS
from lrp4rag.guard.checks.gate.validity import Period, days, read_date

_NEAR = 80
"""Characters before and after a date that tell its event."""

_CLAUSE = r"(?:\A|[.?!,;:\n]\s?)"
_VERB = (
    r"(?:(?P<past>was|were|did|had|applied)|(?P<modal>can|could|may|might|must|should|shall)"
    r"|(?P<present>is|are|do|does|has|have|will|would))(?:n['\u2019]t)?\b"
)
# "who" and "which" ask at the start of a clause; elsewhere they join one.
_ASKING = rf"(?:\b(?:how|what|when|where|why)\b|(?:{_CLAUSE}|\band )(?:who|which)\b)"
_MAIN_VERB = re.compile(rf"(?:{_ASKING}[^?.!;]{{0,100}}?\b|{_CLAUSE}){_VERB}", re.IGNORECASE)

_RULES = (
    r"(?:versions?|editions?|revisions?|releases?|polic(?:y|ies)|rules?|regulations?|guidelines?|terms|limits?"
    r"|rates?|prices?|wording|texts?|handbooks?|manuals?|procedures?|standards?|tariffs?|allowances?"
    r"|requirements?|documents?)"
)
_IN = r"(?:in|on|at|during|of|from|for|since|before|until|after)"
_TO_DATE = r"(?: (?:the|early|late|mid|start of|beginning of|end of|middle of|years?|fy)){0,3}[ -]\Z"
_JOINED = (
    "hired|joined|born|recruited|graduated|retired|enrolled|bought|purchased|built|founded|signed|started|began"
    "|employed|acquired|ordered|booked|moved|married|registered|incurred"
)
_DONE = (
    "sold|took|taken|set|made|paid|got|sent|left|came|held|wrote|written|given|spent|lost|found|went|done|did"
)
_ALWAYS = frozenset(("past", "present", "modal", ""))
_NEVER: frozenset[str] = frozenset()
_BEFORE_A_DATE = tuple(
    (re.compile(pattern, re.IGNORECASE), tenses)
    for pattern, tenses in (
        (  # names of laws: "Employment Rights Act 1996", "ISO 27001:2022"
            r"\b(?:act|law|regulation|directive|treaty|convention|code|iso|en|din|iec)(?: of(?: the)?|,)? \Z"
            r"|\w[:/]\Z",
            _NEVER,
        ),
        (rf"\bby{_TO_DATE}", _NEVER),
        (
            r"\b(?:as (?:of|at|on)|back in|dated|(?:valid|in force|in effect|applicable|effective)"
            rf"(?: in| on| at| during| from)?|{_RULES} (?:of|from|for|in|on|before)){_TO_DATE}",
            _ALWAYS,
        ),
        (  # what happened then: "I joined the company in 2019", "devices sold in 2021"
            rf"(?:\bfrom|\b(?:{_JOINED})(?: \w{{1,20}}){{0,3}}?(?: {_IN})?"
            rf"|(?:\w\wed|\b(?:{_DONE}))(?: [\w-]{{1,20}})? {_IN}){_TO_DATE}",
            frozenset(("past",)),
        ),
    )
)
_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})(?=\.? \d)")
_AT_A_YEAR = re.compile(
    rf"(?:\b(?:{_IN}|and|or|to|between|version){_TO_DATE}|[-\u2013(,] ?\Z|\A\Z)", re.IGNORECASE
)
_MEASURE = re.compile(r" ?([^\W\d_]+|[%\u20ac$\u00a3])")
_AFTER_A_DATE = re.compile(rf"(?: [\w-]{{1,20}}){{0,2}}? {_RULES}\b", re.IGNORECASE)
_ONWARDS = re.compile(rf"\b(?:since|after){_TO_DATE}", re.IGNORECASE)
_UNTIL_THEN = re.compile(rf"\b(?:before|prior to){_TO_DATE}", re.IGNORECASE)
_CHANGE = re.compile(r"\b(?:chang|differ|updat|amend|revis|compar)|\bnew\b", re.IGNORECASE)
_NOW = re.compile(r"\b(?:now|today|currently|current)\b", re.IGNORECASE)
_AGO = re.compile(
    rf"\b(?P<number>\d{{1,3}}|an?|{'|'.join(SMALL_NUMBERS[1:13])}) (?P<unit>year|month|week|day)s? ago\b"
    r"|(?<!the )(?<!from )\blast (?P<last>year|month|week)\b|\b(?P<yesterday>yesterday)\b",
    re.IGNORECASE,
)

_EARLIER = re.compile(
    r"(?<!\bhow )\b(?:previous|former|older|old|superseded|outdated|expired|obsolete|earlier|prior)"
    r"(?: [\w-]{1,20}){0,2}? (?:versions?|editions?|revisions?|polic(?:y|ies)|rules?|regulations?|guidelines?"
    r"|terms|limits?|rates?|wording|text|handbook|manual|procedures?|standards?|allowances?)\b"
    r"|\boriginal (?:version|edition|polic(?:y|ies)|rules?|wording|text)\b"
    r"|\b(?:version|revision|policy) history\b|\bhistory of (?:the|this|our|its)\b"
    r"|\bused to (?:be|have|say|cost)\b|\b(?:I|we|you|they|it|employees|staff|people) used to\b"
    r"|\bdid\b[^.?!]{0,60}\buse to\b",
    re.IGNORECASE,
)
_UNDER = re.compile(r"\b(?:under|in|of|to|by|from|with)(?: the| our| its)? \Z", re.IGNORECASE)
_BEFORE_A_CHANGE = re.compile(
    r"\b(?:before|prior to) (?:the|it|this|that|they|its|our)(?: [\w-]{1,20}){0,2}? "
    r"(?:change[sd]?|update[sd]?|amend(?:ed|ments?)|revis(?:ed|ions?)|reforms?|replaced|new(?! year))\b"
    r"|\b(?:before|prior to) (?:version |v)\d",
    re.IGNORECASE,
)
_IN_THE_PAST = re.compile(
    r"\b(?:previously|formerly|originally|historically|earlier|in the past|back then|at th(?:e|at) time)\b"
    r"|\bbefore(?: (?:that|then|this))? ?(?:\?|\Z)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RequestedTime:
    """The time that a question asks for, and the `words` that say so. Without a date, the period has no start
    and ends now."""

    period: Period
    words: str


def requested_time(question: str, now: datetime, zone: tzinfo) -> RequestedTime | None:
    """Return the time that a question asks for; None for the present. Days are those of `zone`."""
    question = _MONTH.sub(lambda match: match[0].capitalize(), question)
    tense = _tense(question)
    dated = [*_dates(question, tense, zone), *_ago(question, tense, now.astimezone(zone).date(), zone)]
    if any(not period.has(now) for period, _ in dated):
        periods = [period for period, _ in dated]
        if _NOW.search(question):
            periods.append(Period(now, now))
        return RequestedTime(_around(periods), " … ".join(words for _, words in dated[:2]))
    earlier = _earlier(question, tense)
    return None if earlier is None else RequestedTime(Period(None, now), earlier)


def _tense(question: str) -> str:
    """Return the tense of the question itself, not of statements beside it: "I was hired in 2019. How many
    days do I get?". Empty where the question has no verb: "leave policy 2021"."""
    tenses = {match.lastgroup for match in _MAIN_VERB.finditer(question)}
    return next((tense for tense in ("past", "modal", "present") if tense in tenses), "")


def _dates(question: str, tense: str, zone: tzinfo) -> Iterator[tuple[Period, str]]:
    for value in find_dates(question):
        before = question[max(value.start - _NEAR, 0) : value.start]
        after = question[value.end : value.end + _NEAR]
        period = _period(value, after, zone)
        if period is None or not _is_asked_for(value, before, after, tense, question):
            continue
        if _UNTIL_THEN.search(before) and period.start is not None:
            period = days(period.start.date() - timedelta(days=1), 1, zone)
        yield period, value.text


def _is_asked_for(value: Value, before: str, after: str, tense: str, question: str) -> bool:
    """Say whether a date, by the text before and after it, is that of the rules that are asked for."""
    if _ONWARDS.search(before):
        return _CHANGE.search(question) is not None
    for pattern, tenses in _BEFORE_A_DATE:
        if pattern.search(before):
            return tense in tenses
    if _AFTER_A_DATE.match(after):
        return True
    is_year = value.text.isdecimal()
    if is_year and (measure := _MEASURE.match(after)) and measure[1].lower() in (*MONEY, *UNITS):
        return False
    return tense != "modal" and (not is_year or not tense or _AT_A_YEAR.search(before) is not None)


def _period(value: Value, after: str, zone: tzinfo) -> Period | None:
    year, month, day, _ = value.key
    if not isinstance(year, int) or not 1000 < year < 9900:
        return None
    if month is None and (iso := re.match(r"-(0[1-9]|1[0-2])(?![\d-])", after)):
        month = int(iso[1])
    written = f"{year:04}" if month is None else f"{year:04}-{month:02}" if day is None else None
    period = read_date(written or f"{year:04}-{month:02}-{day:02}", zone)
    if period is not None and value.unit == "decade":
        return Period(period.start, datetime(year + 10, 1, 1, tzinfo=zone))
    return period


def _ago(question: str, tense: str, today: date, zone: tzinfo) -> Iterator[tuple[Period, str]]:
    """Yield "last year" and "two months ago" as the whole year or month."""
    for match in _AGO.finditer(question):
        after = question[match.end() : match.end() + _NEAR]
        if tense not in ("past", "") and not after.startswith(("'s", "\u2019s")):
            continue
        unit = (match["unit"] or match["last"] or "day").lower()
        number = _count((match["number"] or "one").lower())
        if unit == "year":
            period = read_date(f"{today.year - number:04}", zone)
        elif unit == "month":
            year, month = divmod(12 * today.year + today.month - 1 - number, 12)
            period = read_date(f"{year:04}-{month + 1:02}", zone)
        else:
            first = today - timedelta(days=7 * number + today.weekday() if unit == "week" else number)
            period = days(first, 7 if unit == "week" else 1, zone)
        if period is not None:
            yield period, match[0]


def _count(written: str) -> int:
    if written.isdecimal():
        return int(written)
    return 1 if written in ("a", "an") else SMALL_NUMBERS.index(written)


def _around(periods: list[Period]) -> Period:
    """Return the shortest period that has all of these in it."""
    starts = [period.start for period in periods if period.start is not None]
    ends = [period.end for period in periods if period.end is not None]
    return Period(
        min(starts) if len(starts) == len(periods) else None, max(ends) if len(ends) == len(periods) else None
    )


def _earlier(question: str, tense: str) -> str | None:
    """Return the words that ask for an earlier version without a date."""
    match = _EARLIER.search(question)
    if match is not None and tense == "modal" and not _UNDER.search(question[: match.start()]):
        match = None
    if match is None and tense in ("past", ""):
        match = _BEFORE_A_CHANGE.search(question)
    if match is None and tense == "past":
        match = _IN_THE_PAST.search(question)
    return None if match is None else match[0]
