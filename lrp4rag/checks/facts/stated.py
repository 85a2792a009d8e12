"""Which sentences of a response state nothing: greetings, offers, headings, questions, refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lrp4rag.values import Value

HEADING = 6
"""Words of a heading, at most."""
LONG = 300
"""Characters from which a sentence is no courtesy, whatever it says."""

_MARKER = re.compile(
    r"\s*(?:[-*+>\u2022\u2013\u25cf\u25aa][^\S\n]+|\(?(?:\d{1,3}|[A-Za-z])[.)](?:\s+|\Z)|#{1,6}\s+)"
)
_MARKUP = " \t*_#>`|\"'\u201c\u201d"
_NUMBERS = frozenset({"quantity", "date", "time"})
_COURTESY = frozenset(
    [
        "hello",
        "hi",
        "hey",
        "dear",
        "greetings",
        "good",
        "morning",
        "afternoon",
        "evening",
        "great",
        "question",
        "sure",
        "certainly",
        "of",
        "course",
        "absolutely",
        "okay",
        "ok",
        "sorry",
        "i",
        "i'm",
        "we",
        "we're",
        "am",
        "are",
        "very",
        "so",
        "apologize",
        "apologise",
        "apologies",
        "my",
        "luck",
        "best",
        "kind",
        "regards",
        "sincerely",
        "welcome",
        "you",
        "you're",
        "there",
        "all",
        "everyone",
        "for",
        "the",
        "your",
        "any",
        "this",
        "that",
        "confusion",
        "inconvenience",
        "happy",
        "glad",
        "to",
        "help",
        "help!",
        "be",
        "would",
        "can",
        "with",
        "it",
        "sir",
        "madam",
        "team",
        "and",
        "happily",
        "gladly",
        "unfortunately",
    ]
)
_SOURCES = r"(?:passage|context|document|source|information|text|article|excerpt)s?"
_LEAD_IN = re.compile(
    rf"(?:based|relying|drawing) (?:up)?on [^.:]{{0,80}}\b{_SOURCES}\b[^.:,]{{0,40}}[.:,]?"
    rf"|according to [^.:]{{0,60}}\b{_SOURCES}(?: \d{{1,3}})?[.:,]?"
    r"|thank(?:s| you)\b.*"
    r"|in (?:summary|short|conclusion|brief|addition)\W{0,3}"
    r"|(?:sources?|references?|citations?|note|answer|summary)\W{0,3}"
    r"|(?:i|we) (?:do not|don't|cannot|can't|am not|could not|couldn't)"
    r" (?:know|sure|certain|say|tell|answer)\b.*"
    r"|i'm (?:not sure|not certain|unsure)\b.*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(?:let me know|feel free|(?:do not|don't) hesitate"
    r"|(?:happy|glad|here|pleased) to (?:help|assist|answer)"
    r"|(?:i|we) hope|hope (?:this|that|it) |if you would like to know|(?:any|further|more) questions"
    r"|you (?:have|need|want|require) (?:any |some )?(?:further|more|other|additional|specific) "
    r"(?:questions?|concerns?|information|help|details?|assistance|clarification))\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:contact|consult|refer|see|check|ask|reach|visit|speak|talk|look|review)(?:ing)?\b"
    r".*\b(?:for|about) (?:more|further|additional|specific|details?)\b"
    r"|\bfor (?:more|further|additional) (?:details?|information|help|specifics)\b",
    re.IGNORECASE,
)


def without_marker(text: str) -> int:
    """How many characters stand before what an item of a list or a heading says."""
    found = _MARKER.match(text)
    return found.end() if found else 0


def states_nothing(text: str, values: Sequence[Value]) -> bool:
    """Whether a sentence states nothing that a passage could support; `values` are those in it."""
    plain = text.strip(_MARKUP).replace("\u2019", "'")
    if not any(sign.isalnum() for sign in plain) or plain.endswith("?") or text.startswith("```"):
        return True
    if any(value.kind in _NUMBERS or value.unit == "code" for value in values) or len(plain) > LONG:
        return False
    if plain.endswith(":") or set(re.findall(r"[\w']+", plain.lower())) <= _COURTESY:
        return True
    if _LEAD_IN.fullmatch(plain) or _OFFER.search(plain) or _ELSEWHERE.search(plain):
        return True
    cited = [value for value in values if value.kind == "reference"]
    return bool(cited) and not _says_more(text, cited)


def is_heading(text: str, values: Sequence[Value], *, followed: bool) -> bool:
    """Whether a line that is no item of a list only names what the lines after it are about."""
    if any(value.kind in _NUMBERS for value in values):
        return False
    plain = text.strip()
    marked = plain.startswith(("#", "**", "__")) and (
        plain[0] == "#" or plain.rstrip(":").endswith(("**", "__"))
    )
    if marked or not followed:
        return marked and not plain.strip(_MARKUP).endswith((".", "!"))
    return plain[-1:].isalnum() and len(plain.split(maxsplit=HEADING)) <= HEADING


def _says_more(text: str, cited: Sequence[Value]) -> bool:
    """Whether there is more than numbers of passages and a word for them."""
    borders = [0, *(border for value in cited for border in (value.start, value.end)), len(text)]
    kept = " ".join(text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True))
    return not {"source", "sources", "see", "and", "reference", "references", "from"}.issuperset(
        re.findall(r"[^\W\d_]+", kept.lower())
    )
