"""Conditions, "unless …", "subject to …", "within 30 days …": their kinds, and what they belong to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lrp4rag.claims.clauses import Span
from lrp4rag.claims.signed import Word, signed_clauses
from lrp4rag.claims.verbs import ADVERBS, FINITE, PLAIN
from lrp4rag.claims.words import content_words

_PERMISSION = (
    "(?:approval|consent|permission|notice|agreement|authori[sz]ation|receipt|proof|certificate|prescription"
    "|signature)"
)
_SIGN = re.compile(
    r"\b(?:"
    # They make a condition of what follows, whatever is said.
    "(?P<strong>unless|only (?:if|when|where|after|with|on|for|to|in|by|once|upon)|if and only if|subject to"
    r"|(?:provided|providing|on (?:the )?condition)(?: that\b|(?=,? (?:you|they|it|the|he|she|we|an?|all"
    r"|no)\b))|except(?:ing)?|excluding|excludes?|(?:apart|aside) from|other than|with the exception of|(?:as"
    "|so) long as|(?:contingent|conditional|dependent|depending) (?:up)?on|must first|(?:is"
    r"|are) not (?:valid|available) \w+|cannot be|(?:do|does|is|are|may|must|can|will)(?: not|n['\u2019]t"
    r"|not) (?:apply|be|include|cover|valid)\w*|(?:and|or|but|it|they|which|this) (?:may|can) be (?:extended"
    "|renewed|prolonged|revoked|withdrawn|suspended|reduced|shortened|refused))"
    # They do so where something is granted or ordered.
    r"|(?P<new>if|when|where|whenever"
    r"|once (?:the|an?|you|they|it|he|she|we|your|their|all|each|this|\w{1,20} (?:is|are|has|have)))"
    r"|(?P<weak>within|until|after|before|no later than|not later than|by the end of|only"
    rf"|with(?:out)? (?:\w{{1,20}} ){{0,4}}{_PERMISSION}"
    r"|at least (?:\S{1,12} ){1,4}(?:before|prior|in advance|ahead)|a minimum of|for a maximum of"
    r"|(?:and|which|that|but) requires?|requiring|(?:which|that|who) (?:must|has to|have to|needs? to)"
    r"|(?:up)?on (?:presentation|proof|approval|submission|payment|production|completion|request)"
    r"|who (?:is|are|has|have)|for (?:those|people|employees|members|customers) (?:who|with)))\b",
    re.IGNORECASE,
)
_GRANTS = re.compile(
    r"\b(?:may|can|must|shall|should|will|entitled|eligible|allowed|permitted|valid|requires?|required|needs?"
    r"|receives?|gets?|qualif(?:y|ies)|appl(?:y|ies)|refund\w*|reimburse\w*|available|free|covers?|covered"
    r"|paid|pays?|lasts?|have to|has to|accrues?|granted|offers?|accepts?|accepted|guaranteed?|use|take|open"
    r"|add|ask|call|costs?|earns?|deliver\w*|ships?|waived|cancel\w*|return\w*|claim\w*)\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|had|did|became|began)\b", re.IGNORECASE)
_ORDERS = re.compile(r"\b(?:must|requires?|required|needs?|ha(?:s|ve) to|only|not|cannot)\b", re.IGNORECASE)
_COORDINATION = re.compile(r";\s+|,\s+(?:and|but|while|whereas)\s+", re.IGNORECASE)
_PREDICATE = re.compile(r"\b(?:and|or)\s+([\w'\u2019-]+)", re.IGNORECASE)
_WORD = re.compile(r"[\w'\u2019-]+")


_TIMES = (
    r"(?! (?:few |other |second |single )?(?:years?|months?|weeks?|days?|hours?|minutes?|mornings?|evenings?"
    r"|nights?|times?|round|over|in all|of (?:them|these|which))\b)"
)
"""Words behind "every" that make a rate or a time of it, which widens nothing."""
_WIDENING = {
    "even": "even (?:if|when|though|without|after|before|for|on|in|to|at)|whether or not|regardless"
    "|no matter|whatever|however (?:old|long|much|many|far|big|large|late|small|high)|irrespective"
    r"|all the same|(?:not|nor) even|with or without|or not\b|or no \w{1,20}",
    "case": "in (?:any|every|each|all) (?:case|event|circumstance)s?|always|automatically"
    "|without (?:any )?(?:exception|condition|limit|reservation|restriction)s?|unconditionally|at any time"
    "|at all times|for good|in all|of (?:any|every) kind|no conditions?|under all circumstances|anyway"
    "|unlimited|at will|freely|for ?ever|permanently|by any(?:one|body)|wherever|whenever|however|any (?:age"
    "|time|day|amount|number|speed|size)",
    "all": rf"(?:all|every|each|any){_TIMES}|everyone|everybody|anyone|anybody|everything|anything|everywhere"
    r"|anywhere|whoever|entire(?:ly)?|whole|both|no matter",
    "too": r"includ(?:ing|ed|es?)|also|too|as well(?: as)?|even|and every(?:thing|body|one) else|likewise"
    r"|just as|equally|same",
}
_LIMITING = {
    "exception": r"unless|except(?:ing)?|apart from|aside from|other than|with the exception of|excluding"
    r"|save for|but not|not (?:for|on|in|at|to|if|when)|without",
    "only": r"only|solely|exclusively|merely|nothing but|just",
    "if": "if|provided(?: that)?|providing|as long as|so long as|on condition|in (?:the )?case|subject to"
    "|should|depending on|assuming|given that|whoever|anyone who|those who|people who|who|whose",
    "when": r"when|whenever|once|while|where|during|outside|upon|as soon as",
    "time": "until|till|before|after|within|by|from|since|at the latest|at the earliest|no later than"
    "|later than|first|in advance|beforehand",
    "limit": "up to|at most|at least|no more than|not more than|less than|more than|fewer than|under|over"
    "|above|below|maximum|minimum|limited to|(?:no|not) (?:longer|older|younger) than|or (?:more|less|older"
    "|younger|below|above)|at the most|between",
    "with": r"with|for|on|in(?: the)? case of|against",
    "mostly": "usually|normally|generally|mostly|most|often|sometimes|certain|some|partly|may|might"
    "|in principle|ordinary|perhaps|probably",
}
WIDENERS = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _WIDENING.items()}
LIMITS = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _LIMITING.items()}
_ENDING = re.compile(r"[;:()\n,]|(?<=[.!?])\s|\bbut\b|\bwhile\b", re.IGNORECASE)
_BEGINNING = re.compile(
    r"\b(?P<wide>(?:even|also) (?:if|when|though|without|after|before|for|on|with)|with or without"
    r"|whether or not|whether|regardless of|no matter|including|included|whatever|however)\b"
    r"|\b(?P<never>unless|except(?: for)?|apart from|with the exception of|excluding|other than|but not"
    r"|not if|without|not (?:for|on|in|at|when))\b|\b(?P<only>only (?:if|when|once|for|with|after|where|on|in"
    r"|to|at|by|from|until|before)|only|nobody but)\b|\b(?P<need>if|provided(?: that)?|as long as|so long as"
    "|on condition that|when|whenever|once|where|should|in case of|those who|people who|who|subject to|with"
    r"|for)\b|\b(?P<before>before|until|till|by|prior to|in advance|beforehand)\b|\b(?P<after>after|from"
    r"|since|afterwards|later)\b|\b(?P<most>up to|at most|no more than|not more than|less than|fewer than"
    r"|under|below|within|maximum)\b|\b(?P<least>at least|no less than|more than|over|above|minimum"
    r"|beyond)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Restriction:
    """Characters `start` to `end` of a text: a condition, its `kind`, the content words in it, and whether it
    has a denial inside."""

    start: int
    end: int
    kind: str
    words: tuple[Word, ...]
    is_denied: bool


def kinds(patterns: Mapping[str, re.Pattern[str]], text: str, start: int, end: int) -> frozenset[str]:
    """Return the kinds of which the characters `start` to `end` of a text have a word."""
    return frozenset(kind for kind, pattern in patterns.items() if pattern.search(text, start, end))


def restrictions(text: str, start: int, end: int) -> tuple[Restriction, ...]:
    """Return the conditions in the characters `start` to `end` of a text; each ends with its clause, or where
    the next begins."""
    conditions = []
    signs = list(_BEGINNING.finditer(text, start, end))
    borders = [match.start() for match in _ENDING.finditer(text, start, end)]
    for sign, following in zip(signs, [*(match.start() for match in signs[1:]), end], strict=False):
        last = min([following, *(border for border in borders if border > sign.end())])
        inner = list(signed_clauses(text, sign.end(), last))
        if words := tuple(word for clause in inner for word in clause.content):
            denied = math.prod(clause.sign for clause in inner) < 0
            conditions.append(Restriction(sign.start(), last, str(sign.lastgroup), words, denied))
    return tuple(conditions)


@dataclass(frozen=True, slots=True)
class Condition:
    """Characters `start` to `end` of a sentence, and the words that it is a condition `of`: of two predicates
    the last, unless a comma stands between."""

    start: int
    end: int
    of: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A main clause of a sentence: its characters `start` to `end`, what it says without its conditions
    (`core`), and these."""

    start: int
    end: int
    core: str
    conditions: tuple[Condition, ...]


def statements(text: str) -> list[Statement]:
    """Return the main clauses of a sentence with their conditions, in its order."""
    clauses: list[Statement] = []
    for start, end in _main_clauses(text):
        spans = list(_conditions(text, start, end))
        core = _without(text, start, end, spans)
        if clauses and not content_words(core):  # no statement of its own: a condition of the one before
            last = clauses.pop()
            condition = Condition(start, end, last.core)
            clauses.append(Statement(last.start, end, last.core, (*last.conditions, condition)))
        else:
            conditions = (Condition(a, b, _before(text, start, a) or core) for a, b in spans)
            clauses.append(Statement(start, end, core, tuple(conditions)))
    return clauses


def grants(text: str) -> bool:
    """Say whether a sentence says what one may, must or gets; what happened once has no conditions left."""
    return bool(_GRANTS.search(text)) and not _PAST.search(text)


def has_sign(text: str) -> bool:
    """Say whether a sentence may be the condition of another one."""
    return bool(_SIGN.search(text) or _ORDERS.search(text))


def _main_clauses(text: str) -> Iterator[Span]:
    start = 0
    for match in _COORDINATION.finditer(text):
        ahead = [word.lower() for word in _WORD.findall(text[match.end() : match.end() + 200])]
        subject = bool(ahead) and ahead[0] not in FINITE and ahead[0] not in ADVERBS
        if subject and any(word in FINITE or word in PLAIN for word in ahead):
            yield start, match.start()
            start = match.end()
    yield start, len(text)


def _conditions(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the conditions of a main clause. A weak sign inside a condition is a part of it: "must end
    within"."""
    sure = grants(text[start:end])
    begin = close = -1
    for match in _SIGN.finditer(text, start, end):
        sign = match.start()
        inside = sign < close
        if not (match["strong"] or sure) or (inside and match["weak"]):
            continue
        if close >= 0:
            yield begin, _stripped(text, begin, min(close, sign))
        begin, close = sign, _close(text, start, sign, end)
    if close >= 0:
        yield begin, _stripped(text, begin, close)


def _before(text: str, start: int, begin: int) -> str:
    """Return the second of two predicates, where a condition follows it without a comma; "" otherwise."""
    if text[:begin].rstrip().endswith(","):
        return ""
    verbs = [match.start(1) for match in _PREDICATE.finditer(text, start, begin) if _is_verb(match[1])]
    return text[verbs[-1] : begin] if verbs and content_words(text[verbs[-1] : begin]) else ""


def _is_verb(word: str) -> bool:
    return word.lower() in FINITE or word.lower() in PLAIN


def _close(text: str, start: int, begin: int, end: int) -> int:
    """Return where a condition ends: at the end of its clause, or at a comma if it opens the clause or a verb
    follows the comma."""
    opens = not text[start:begin].strip()
    for match in re.compile(r",\s+([\w'\u2019-]+)").finditer(text, begin, end):
        if opens or match[1].lower() in FINITE:
            return match.start()
    return end


def _stripped(text: str, begin: int, end: int) -> int:
    words = text[begin:end].rstrip(" ,.;:!()\t\n")
    for last in (" and", " or", " but"):
        words = words.removesuffix(last)
    return begin + len(words)


def _without(text: str, start: int, end: int, conditions: Sequence[Span]) -> str:
    borders = [start, *(border for condition in conditions for border in condition), end]
    return " ".join(text[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
