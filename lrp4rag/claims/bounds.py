"""Bounds ("at least", "or more") and hedges ("about") in the words around a quantity."""

from __future__ import annotations

import re
from dataclasses import replace

from lrp4rag.claims.value import Bound, Value

_LEAST = re.compile(
    r"\b(?:at least|(?:a )?minimum(?: of)?|(?:no|not) (?:less|fewer) than|over|above|in excess of|upwards? of"
    r"|(?:greater|higher|longer|larger|more|older|heavier|better|hotter|warmer|dearer) than"
    r"|exceed(?:s|ed|ing)?|surpass(?:es|ed)?|top(?:s|ped)|beyond|past"
    r"|minimum(?: \w+){0,4} (?:is|are|was)) (?:the |an? )?\Z",
    re.IGNORECASE,
)
_MOST = re.compile(
    r"\b(?:up to|at most|limited to|(?:a )?maximum(?: of)?|(?:no|not) (?:more|longer|later|greater) than"
    r"|(?:less|fewer|lower|shorter|smaller|younger|lighter|colder|cooler|cheaper) than"
    r"|under|below|not exceeding|as (?:much|many) as|maximum(?: \w+){0,4} (?:is|are|was)) (?:the |an? )?\Z",
    re.IGNORECASE,
)
_LEAST_AFTER = re.compile(
    r"\+|\w*(?: of age)?(?:,? (?:or|and) (?:more|older|over|above|longer|up(?:wards)?|higher|later)"
    r"| or better| at (?:the )?(?:least|minimum)| minimum)\b",
    re.IGNORECASE,
)
_MOST_AFTER = re.compile(
    r"\w*(?:,? (?:or|and) (?:less|fewer|under|below|younger|shorter|lower|earlier)"
    r"| at (?:the )?(?:most|maximum)| maximum)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca?\.|close to"
    r"|(?:just|slightly|a little|a bit|well|shortly) (?:under|over|below|above|less than|more than|shy of)"
    r"|(?:an )?estimated|in the (?:region|area|neighbou?rhood) of|somewhere around|practically|virtually) "
    r"(?:the |an? )?|[~\u2248\u223c] ?)\Z",
    re.IGNORECASE,
)
_HEDGE_AFTER = re.compile(
    r"(?: \w+)? (?:or so|or thereabouts|more or less|approximately|give or take)\b|-?ish\b", re.IGNORECASE
)
_LOSS = re.compile(
    r"\b(?:loss(?:es)?|deficit|shortfall|debts?|decline|drop|fall|decrease|lost|fell|dropped|declined|down)"
    r"(?: \w+){0,3} \Z",
    re.IGNORECASE,
)
_BEFORE = 40


def qualified(text: str, value: Value) -> Value:
    """Return the quantity with the bound or the hedge that a text gives it."""
    before = text[max(value.start - _BEFORE, 0) : value.start]
    hedged = bool(_HEDGE.search(before) or _HEDGE_AFTER.match(text, value.end))
    bound = "" if hedged else bound_of(text, value.start, value.end)
    loss = bool(_LOSS.search(before))
    if not (hedged or bound or loss):
        return value
    return replace(value, precision=replace(value.precision, bound=bound, hedged=hedged, loss=loss))


def bound_of(text: str, start: int, end: int) -> Bound:
    """Return the bound that the words before and behind a number set ("at least", "or less")."""
    before = text[max(start - _BEFORE, 0) : start]
    if _LEAST.search(before) or _LEAST_AFTER.match(text, end):
        return "least"
    return "most" if _MOST.search(before) or _MOST_AFTER.match(text, end) else ""
