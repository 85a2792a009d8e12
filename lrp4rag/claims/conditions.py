"""Conditions of a statement, "unless …", "subject to …", "within 30 days …", and what they are of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims.clauses import Span
from lrp4rag.claims.verbs import ADVERBS, FINITE, PLAIN
from lrp4rag.claims.words import content_words

_PERMISSION = (
    "(?:approval|consent|permission|notice|agreement|authori[sz]ation|receipt|proof|certificate|prescription"
    "|signature)"
)
_SIGN = re.compile(
    r"\b(?:"
    # They make a condition of what follows, whatever is said.
    r"(?P<strong>unless|only (?:if|when|where|after|with|on|for|to|in|by|once|upon)|if and only if|subject to"
    r"|(?:provided|providing|on (?:the )?condition)"
    r"(?: that\b|(?=,? (?:you|they|it|the|he|she|we|an?|all|no)\b))"
    r"|except(?:ing)?|excluding|excludes?|(?:apart|aside) from|other than|with the exception of"
    r"|(?:as|so) long as|(?:contingent|conditional|dependent|depending) (?:up)?on|must first"
    r"|(?:is|are) not (?:valid|available) \w+|cannot be"
    r"|(?:do|does|is|are|may|must|can|will)(?: not|n['\u2019]t|not) (?:apply|be|include|cover|valid)\w*"
    r"|(?:and|or|but|it|they|which|this) (?:may|can) be "
    r"(?:extended|renewed|prolonged|revoked|withdrawn|suspended|reduced|shortened|refused))"
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
    found: list[Statement] = []
    for start, end in _main_clauses(text):
        spans = list(_conditions(text, start, end))
        core = _without(text, start, end, spans)
        if found and not content_words(core):  # no statement of its own: a condition of the one before
            last = found.pop()
            condition = Condition(start, end, last.core)
            found.append(Statement(last.start, end, last.core, (*last.conditions, condition)))
        else:
            conditions = (Condition(a, b, _before(text, start, a) or core) for a, b in spans)
            found.append(Statement(start, end, core, tuple(conditions)))
    return found


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
    """Where a condition ends: at the end of its clause; one that opens it, or stands inside, at a comma."""
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
