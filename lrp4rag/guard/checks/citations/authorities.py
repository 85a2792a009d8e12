"""Authorities that no passage has: studies and their authors, judgments and letters by their date, documents
by their number, web addresses, and words that somebody is quoted with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lrp4rag.claims import agree, find_values
from lrp4rag.claims.dates import MONTHS
from lrp4rag.claims.words import content_words
from lrp4rag.guard.checks.citations.citation import Citation, Format
from lrp4rag.guard.checks.citations.library import Library
from lrp4rag.util.text import one_line

_NAME = r"[A-Z][\w'\u2019-]{1,40}"
_YEAR = r"(?:19|20)\d\d[a-z]?"
_AUTHORS = re.compile(
    rf"(?P<name>{_NAME})(?:,? (?:and|&) {_NAME})?,? et al\b\.?(?:[^()\n]{{0,80}}?\b{_YEAR})?"
    rf"|(?<=\()(?P<first>{_NAME})(?: (?:and|&) {_NAME})?, {_YEAR}(?=[);,])"
)
_RESEARCH = r"stud(?:y|ies)|research|surveys?|experiments?|analys[ei]s|investigations?"
_BY = re.compile(
    rf"\b(?i:{_RESEARCH}) (?:(?:conducted|published|done|made) )?(?:by|from) (?:the )?(?P<name>{_NAME})"
)
_PEOPLE = "experts?|scientists|researchers|doctors|lawyers|economists"
_UNNAMED = re.compile(
    rf"\b(?P<who>{_RESEARCH}|{_PEOPLE})(?: (?:has|have|also|clearly|generally|all)){{0,2}} "
    r"(?:shows?|shown|suggests?|found|finds?|agrees?|agreed|indicates?|confirms?|confirmed|proves?|proven|"
    r"demonstrates?|demonstrated|recommends?)\b",
    re.IGNORECASE,
)
_TITLE = r"(?:(?:Dr|Prof|Professor|Judge|Minister|President)\.? )?"
_LONG_NAME = rf"{_TITLE}{_NAME}(?: (?:(?:of|for|and|on|the) ){{0,2}}{_NAME}){{0,6}}"
_ANNOUNCED = re.compile(
    r"\b(?i:according to|(?:stated|confirmed|recommended|required|reported|published|advised|certified)"
    rf" by) (?:the |our |an? )?(?P<cited>{_LONG_NAME})"
)
_SPEAKING = re.compile(
    rf"(?<![\w-])(?!(?:The|Our|An?) )"
    rf"(?P<cited>[A-Z]{{2,8}}|{_TITLE}{_NAME}(?: (?:(?:of|for|and|on|the) ){{0,2}}{_NAME}){{1,6}})"
    r" (?:(?:also|expressly|strongly) )?"
    r"(?:recommends?|advises?|warns?|mandates?|stipulates?|confirms?|confirmed) "
)
_RESEARCHED = re.compile(rf"\b(?:{_RESEARCH}|{_PEOPLE})\b", re.IGNORECASE)
_DATED = re.compile(
    r"\b(?:judge?ment|ruling|decision|order|notice|memo|memorandum|circular|letter|press release|bulletin|"
    r"statement|resolution|decree|opinion|announcement) (?:of|from|dated) (?:the )?"
    rf"(?P<date>[^.;:()\n]{{0,3}}\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?(?:{'|'.join(MONTHS)})(?:,? {_YEAR})?"
    rf"|(?:{'|'.join(MONTHS)}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? {_YEAR})?|\d{{4}}-\d\d-\d\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\b(?i:certificate|patent|docket|case|file|memo|memorandum|bulletin|circular|directive|regulation|report|"
    r"notice|guideline|approval|licen[cs]e)(?: (?i:no\.?|number|ref\.?))?:? "
    r"(?P<code>[A-Z]{1,6}[ -]?\d[\d./ -]{2,20}\d|\d{1,4}[/-]\d{2,4}(?:[/-]\d{1,4})?|\d{5,12})(?!\w)"
)
_ADDRESS = re.compile(r"(?P<cited>(?:https?://|www\.)[^\s<>\"'()\[\]]{2,300}[^\s<>\"'()\[\].,;:!?])")
_SPEECH = re.compile(
    r"(?:\b(?:said|says|states?|stated|wrote|writes|reads|declared|declares|explains?|according to)"
    r"\b[^\"\u201c\u201d\n]{0,60}|:[ ])[\"\u201c](?P<cited>[^\"\u201c\u201d\n]{20,500})[\"\u201d]",
    re.IGNORECASE,
)
_NO_NAMES = content_words(
    "the this that passage document section article source it they we you dr prof professor"
)
WORDS = 5
"""Words of what is quoted, at least: fewer are a term."""


def find_authorities(text: str, library: Library, tick: Callable[[], None]) -> Iterator[Citation]:
    """Those that stand in no passage, and so are fabricated; of what a passage has, nothing is told."""
    for form, pattern, is_known in _FORMS:
        for match in pattern.finditer(text):
            tick()
            if not is_known(match, library):
                start, end = match.span("cited") if "cited" in pattern.groupindex else match.span()
                missing = "such sentence" if form == "quotation" else one_line(text[start:end], 60)
                yield Citation(start, end, form, missing=missing, inline=True)


def _has_name(match: re.Match[str], library: Library) -> bool:
    name = match["name"] or match["first"]
    return name.casefold() in MONTHS or library.mentions(name)


def _has_somebody(match: re.Match[str], library: Library) -> bool:
    """Say whether passages or question have half of the words of a name, in any of their forms."""
    words = content_words(match["cited"]) - _NO_NAMES
    known = 2 * sum(map(library.has_word, words)) >= len(words)
    return known if words and not match["cited"].isupper() else library.has_name(match["cited"])


def _has_date(match: re.Match[str], library: Library) -> bool:
    wanted = [one for one in find_values(match["date"]) if one.kind == "date"]
    # A year alone agrees with each of its days.
    days = [other for other in library.dates if other.key[2] is not None]
    return not wanted or any(agree(one, other) for one in wanted for other in days)


def _has_words(match: re.Match[str], library: Library) -> bool:
    return len(match["cited"].split()) < WORDS or library.quotes(match["cited"])


_FORMS: tuple[tuple[Format, re.Pattern[str], Callable[[re.Match[str], Library], bool]], ...] = (
    ("study", _AUTHORS, _has_name),
    ("study", _BY, lambda match, library: library.mentions(match["name"])),
    ("authority", _ANNOUNCED, _has_somebody),
    ("authority", _SPEAKING, _has_somebody),
    ("study", _UNNAMED, lambda _, library: library.finds(_RESEARCHED)),
    ("dated", _DATED, _has_date),
    ("numbered", _NUMBERED, lambda match, library: library.mentions(match["code"])),
    ("address", _ADDRESS, lambda match, library: library.mentions(match["cited"].rstrip("/"))),
    ("quotation", _SPEECH, _has_words),
)
"""How each is written, and whether the passages have it."""
