"""The text around a name that is cited: "according to", "says", brackets, quotation marks."""

from __future__ import annotations

import re

from lrp4rag.guard.checks.citations.citation import Citation, Format, Part

_PARTICIPLES = (
    "stated|said|described|set out|laid down|required|specified|defined|explained|shown|found|given|listed|"
    "mentioned|granted|outlined|noted|reported|provided|documented|cited|established"
)
_BEFORE = re.compile(
    rf"(?:\b(?:according to|per|under|see(?: also)?|cf\.?|based on|as (?:\w{{1,20}} )?(?:in|by)|"
    rf"(?:{_PARTICIPLES}) (?:in|by|under)|in accordance with|pursuant to)|\bsources?:|\breferences?:)"
    r"[ \t](?:the |our |your |its |their )?[\"\u201c'*_\[(]{0,4}\Z",
    re.IGNORECASE,
)
_VERBS = (
    "say|state|require|grant|allow|give|set|specif(?:y|ie)|mention|provide|note|define|describe|explain|confirm|"
    "limit|permit|prohibit|forbid|report|list|show|indicate|suggest|recommend|mandate|oblige|stipulate|tell|"
    "cover|discuss|warn|advise|establish|pay|monitor|add|claim|contain|include|outline|address|impose|cap|fix"
)
_AFTER = re.compile(
    rf"[\"\u201d'*_\])]{{0,4}},? (?:(?:also|further|explicitly|clearly|only|does not|do not|doesn't) ){{0,2}}"
    rf"(?:{_VERBS})(?:s|es)?\b",
    re.IGNORECASE,
)
_ON = re.compile(rf" (?:on|for|about) (?:[\w-]{{1,30}} ){{0,3}}[\w-]{{1,30}} (?:{_VERBS})(?:s|es)?\b")
_OPENED = re.compile(r"[(\[](?:(?:see|cf\.|sources?:|ref(?:erence)?s?:) )?\Z", re.IGNORECASE)
_BRACKETS = {"(": ")", "[": "]", "\u3010": "\u3011"}
_QUOTES = frozenset('"\u201c\u201d*_')
_REACH = 100


def is_announced(text: str, start: int) -> bool:
    """Say whether "according to", "as stated in" or the like stands right before."""
    return bool(_BEFORE.search(text[max(start - 50, 0) : start]))


def speaks(text: str, end: int) -> bool:
    """Say whether a verb such as "says" stands right after."""
    return bool(_AFTER.match(text, end, end + 60))


def speaks_on(text: str, end: int) -> bool:
    """Say whether such a verb follows after a topic: "the guideline on sepsis requires"."""
    return bool(_ON.match(text, end, end + 160))


def is_quoted(text: str, start: int, end: int) -> bool:
    return {text[start - 1 : start], text[end : end + 1]} <= _QUOTES


def in_brackets(text: str, start: int) -> bool:
    """Say whether a bracket is open there, within a reach of 100 characters."""
    before = text[max(start - _REACH, 0) : start].rpartition("\n")[2]
    return any(before.rfind(opening) > before.rfind(closing) for opening, closing in _BRACKETS.items())


def is_wrapped(text: str, start: int, end: int) -> bool:
    """Say whether brackets hold these characters and nothing else."""
    return _BRACKETS.get(text[start - 1 : start]) == text[end : end + 1]


def with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span by the brackets or quotation marks that hold nothing else."""
    while is_wrapped(text, start, end) or is_quoted(text, start, end):
        start, end = start - 1, end + 1
    return start, end


def is_cited(text: str, start: int, end: int) -> bool:
    """Say whether a name is cited: it is announced, it speaks, or it follows a bracket, also with "see"."""
    opened = _OPENED.search(text[max(start - 14, 0) : start])
    return is_announced(text, start) or speaks(text, end) or opened is not None


def marked(
    text: str, start: int, end: int, form: Format, parts: tuple[Part, ...], missing: str = ""
) -> Citation:
    """Return the citation of a span with the marks around it; inline, unless a bracket is open there."""
    inline = not in_brackets(text, start)
    return Citation(*with_marks(text, start, end), form, parts, missing, inline=inline)
