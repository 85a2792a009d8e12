"""Sentences that say that the passages lack what was asked for: whether these have it, by words.

"The documents do not mention a fee for leaving early" is right where no passage knows of a fee, and wrong
where one does. To a comparer both are unsupported: no passage says what passages do not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lrp4rag.claims.absence import IDLE, absence_in
from lrp4rag.claims.answer import Passages
from lrp4rag.claims.borrowed import Subjects
from lrp4rag.claims.grounds import Counterpart, Grounds
from lrp4rag.claims.lexicon import Senses, relation
from lrp4rag.claims.signed import Word, signed_clauses
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import stem, word_set

_SENTENCES = 3
"""Sentences of the passages that are looked at, those with most of the words."""

_TEXTS = (
    "(?:passages?|texts?|documents?|documentation|sources?|pages?|information|leaflets?|articles?|guides?"
    "|manuals?|reports?|excerpts?|extracts?|handbook|sections?|notices?|e-?mails?|letters?|minutes|materials?"
    "|entry|entries|details|context|listings?|descriptions?|website|brochure|notes?|statements?|records?"
    "|lists?|none|neither)"
)
_OTHERS = "(?:they|it|I|we|policy|terms|rules?|contract)"
"""Subjects that may also give, contain or cover something themselves."""
_TELL = (
    "(?:mention|state|specify|say|name|list|tell|explain|reveal|indicate|describe|discuss|address|answer|quote"
    "|report|record|make clear)s?"
)
_HOLD = "(?:give|contain|provide|offer|include|cover|make|have|has)s?"
_TOLD = (
    "(?:mentioned|stated|specified|said|named|listed|explained|revealed|indicated|described|discussed"
    r"|addressed|answered|quoted|reported|recorded|documented|known|clear|told"
    r"|given(?= (?:in|by|anywhere)\b|\s*(?:[.,;]|$)))"
)
_BE = r"(?:is|are|was|were|remains?|has been|have been)"
_NOT = r"(?:\s*n['\u2019]t|\s+not|\s+never|\s+nowhere|not)"
_DO = rf"\b(?:(?:do|does|did|can|could){_NOT}|can['\u2019]t)(?: \w+){{0,2}}?"
_NEWS = (
    "(?:information|mention|details?|indication|word|answer|guidance|figures?|price|amount|date|statement)"
)
_AFTER = re.compile(
    rf"\b{_TEXTS}\b[^.;:!?\n]{{0,60}}?{_DO} (?:{_TELL}|{_HOLD})\b"
    rf"|\b{_OTHERS}\b[^.;:!?\n]{{0,60}}?{_DO} {_TELL}\b"
    rf"|\b{_TEXTS}\b[^.;:!?\n]{{0,40}}?\b(?:{_TELL}|{_HOLD}) (?:no|nothing)\b"
    rf"|\b{_OTHERS} (?:say|tell|state|list|mention)s? (?:no|nothing)\b|\b{_OTHERS} {_HOLD} no(?= {_NEWS}\b)"
    rf"|\b(?:{_TEXTS}|{_OTHERS})\b[^.;:!?\n]{{0,120}}?\bbut not"
    r"(?= (?:whether|how|what|when|where|who|why|which)\b)"
    r"|\b(?:I|we) (?:(?:can|could|do)(?:not| not|n['\u2019]t)|can['\u2019]t) (?:find|tell|see|say|answer)\b"
    r"(?! (?:that|this|it|these|those)(?: anywhere)?(?: (?:in|from)\b|\s*[.,;:!?]|\s*$))"
    rf"|\bno {_NEWS}\b(?= (?:on|about|of|as to|regarding|for|whether)\b)"
    rf"|\bnothing\b(?= (?:about|as to|regarding)\b|[^.;]{{0,20}}\b(?:said|mentioned|stated)\b)",
    re.IGNORECASE,
)
"""Phrases behind which what is missing stands."""
_BEFORE = re.compile(
    rf"\b{_BE}{_NOT}(?: \w+){{0,2}}? {_TOLD}"
    rf"|\b{_BE}{_NOT} (?:covered|dealt with|discussed) (?:in|by) (?:them|(?:\w+ ){{0,2}}?{_TEXTS})\b"
    r"|\b(?:left open|unstated|unspecified|missing from the)\b",
    re.IGNORECASE,
)
"""Phrases before which what is missing stands, or behind which it is a clause: "it is not stated whether"."""
_WITHIN = re.compile(rf"\bno\b[^,.;:!?\n]{{1,60}}? {_BE} {_TOLD}", re.IGNORECASE)
"""Phrases in which what is missing stands."""
_ABOUT = r"(?: (?:on|about|of|for) (?:(?!(?:but|and)\b)\w+\b ?){1,6})?"
_SOURCE = rf" (?:in|from|by) (?:them|(?:\w+ ){{0,3}}?{_TEXTS})\b{_ABOUT}"
_UNTOLD = "(?:stated|mentioned|said|specified)(?: anywhere)?"
_THAT = re.compile(
    r"\A(?:(?:unfortunately|sorry),? (?:but )?|I(?:['\u2019]m| am) (?:afraid|sorry),? (?:but )?)?"
    rf"(?:(?:I|we) (?:(?:can|could){_NOT}|can['\u2019]t) (?:find|tell|say|answer)(?: you)? (?:that|this)"
    rf"(?: anywhere)?(?:{_SOURCE})?"
    rf"|(?:that|this)(?: {_BE}|['\u2019]s){_NOT} {_UNTOLD}(?:{_SOURCE})?"
    rf"|(?:that|this|it)(?: {_BE}|['\u2019]s){_NOT}(?: (?:\w+ )?{_TOLD})?{_SOURCE})"
    r"(?: yet)?[,;.!]*(?:,? sorry\b|,? (?:so |therefore )?please\b[^\d.;]*)?\W*\Z",
    re.IGNORECASE,
)
"""Sentences that say no more than that what was asked for is missing: "I can't tell you that", "That isn't in
the reports yet"."""
_TELLING = re.compile(
    rf"\b(?:{_TEXTS}|{_OTHERS})\b(?: \w+){{0,3}}? (?:{_TELL}|{_HOLD}|deal|speak)\b", re.IGNORECASE
)
_ADVICE = re.compile(r"[\s,;]*(?:so|please|therefore|as)\b", re.IGNORECASE)
_OPENINGS = re.compile(r"[;:(\n]|,? (?:but|and|though|although|so|yet|while) ")
_ENDINGS = re.compile(
    r"[;:\n]|(?<=.{4}),? (?:but|though|although|so|yet) |, (?:and|only|please|as) |(?<=\w)\.\s"
)
_HEDGED = re.compile(
    r"\b(?:how to|specific\w*|direct(?:ly)?|explicit(?:ly)?|detail(?:s|ed)?|enough|sufficient|general|beyond"
    r"|definit(?:e|ive)|further|more|additional|if)\b",
    re.IGNORECASE,
)
"""Words by which a text may be right although passages speak of the thing: not so much of it, or not how it
is done."""
_IDLE = IDLE | word_set(
    """
afraid anything anywhere apply articles ask available come_in contact description do documentation documents
entries entry exact excerpts extract far further get give_in guidance guide handbook happen have i'm kind
leaflet leaflets like little long make manual many material much need note notes pages passages product
quote section sorry specific suggest take terms texts thing us use way website whether
"""
)
"""Words of such a sentence that do not tell what is missing."""

_KINDS = word_set(
    """
address age amount background capacity cause charge color colour cost current date day deadline duration
email fee figure height hour length limit location long maximum minimum month name number old period phone
place population price procedure rate reason size speed sum telephone temperature time type way weight width
year
"""
)
"""Kinds of answers that passages give without naming them: "by 10 July" of a deadline."""
_MEASURED = word_set(
    "big cold deep expensive far fast heavy high hot large loud old quick small soon tall wide"
)
"""Words that ask for one: "how heavy"."""
_ANSWERS: tuple[tuple[frozenset[str], str, re.Pattern[str]], ...] = tuple(
    (word_set(asking), unit, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for asking, unit, words in (
        ("charge cost expensive fare fee price rent", "money", "free|gratis|included|charged?|no cost"),
        ("interest commission percentage", "%", "per ?cent"),
        ("weight weigh heavy", "kilogram", "kg|tonnes?|pounds?|light|heavy"),
        ("width height distance tall wide deep", "meter", "cm|mm|km|m|miles?|feet|inch(?:es)?"),
        ("temperature hot cold warm", "kelvin", "degrees?|hot|cold|warm|cool"),
        ("decibel loud noise", "decibel", "db|quiet|silent|loud|noisy"),
        ("date deadline duration", "second", "hours?|days?|weeks?|months?|years?|until|before|after|when"),
        ("telephone", "", r"\d[\d ()/-]{4,}\d|call|ring"),
    )
)
"""Kinds of answers: words that ask for one, the unit of its values, and words that may stand in their
place."""
_HOW_MUCH = re.compile(r"\bhow (?:much|many|long|old|big|large|heavy|far|often)\b", re.IGNORECASE)
"""What a sentence without a value does not answer."""
_COUNTED = ("quantity", "date", "time", "period")
FEWEST_UNKNOWN, UNKNOWN = 2, 1 / 3
"""Of a question's words, how many, and what part, passages do not know at least where they do not answer."""

Outcome = Literal["there", "absent"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Characters `start` to `end` of a text, which say that the passages lack something; whether that is
    `"there"`, and where, or `"absent"`."""

    start: int
    end: int
    outcome: Outcome
    place: Counterpart | None = None


def refusal_in(passages: Passages, text: str, start: int, end: int) -> Refusal | None:
    """Judge what the characters `start` to `end` of a text say to be missing that the question asks for.

    It is there where a sentence that is not about something else has its words, if need be with its title. It
    is absent where no passage has one of the words that were asked for, or an answer of the kind that is said
    to be missing, such as a price, and the text claims nothing else.
    Return None where the text says of nothing that it is missing, and where the words do not tell."""
    grounds, missing = passages.grounds, _missing_in(text, start, end)
    if missing is None:
        return _unanswered(grounds, text, start, end)
    senses, bases = Senses(map(_plain, grounds.question_words)), dict.fromkeys(map(_plain, missing.words))
    asked_bases = {base for base in bases if base in senses}
    if not grounds.clauses:
        return None
    unknown = _unknown(grounds, bases)
    if unknown & asked_bases - _KINDS or _have_no_answer(passages, unknown):
        rest = text[start : missing.start], text[missing.end : end]
        return None if any(map(_claims, rest)) else Refusal(start, end, "absent")
    if not asked_bases or unknown or all(map(str.isdigit, bases)) or _HEDGED.search(text, start, end):
        return None
    subjects, how_much = Subjects(passages.question, passages.index), _HOW_MUCH.search(text, start, end)
    for place, score in grounds.aligned(missing.words).sentences(_SENTENCES):
        title = next(entry for entry in passages.index.places if entry.passage == place.passage)
        content = {word.base for entry in (title, place) for word in entry.content}
        stems = set(map(_head, content))
        if (
            all(_head(base) in stems or content & grounds.related(base).keys() for base in bases)
            and len(place.content) > len(bases)  # more than a heading
            and (not how_much or any(value.kind in _COUNTED for value in place.values))
            and absence_in(place.text, 0, len(place.text)) is None
            and not subjects.is_of_another(place, text[start:end])
        ):
            there = Counterpart(start, end, place.passage, place.start, place.end, score)
            return Refusal(start, end, "there", there)
    return None


def _unanswered(grounds: Grounds, text: str, start: int, end: int) -> Refusal | None:
    """Judge a sentence that says that what was asked for is missing, without its words: it is absent where
    the passages do not know many of the question's."""
    if not grounds.clauses or _THAT.match(text[start:end]) is None:
        return None
    bases = {_plain(word) for word in grounds.question_words if word.base not in _IDLE} - _KINDS - _MEASURED
    unknown = _unknown(grounds, bases)
    is_absent = len(unknown) >= max(FEWEST_UNKNOWN, UNKNOWN * len(bases))
    return Refusal(start, end, "absent") if is_absent else None


def _unknown(grounds: Grounds, bases: Iterable[str]) -> set[str]:
    """Return the base forms that no passage has, nor a word of their sense."""
    heads = {_head(word.base) for clause in grounds.clauses for word in clause.content}
    return {base for base in bases if _head(base) not in heads and not _of_same_sense(grounds, base)}


def _have_no_answer(passages: Passages, bases: Iterable[str]) -> bool:
    """Say whether some words ask for kinds of answers of which the passages have none."""
    kinds = [kind for kind in _ANSWERS if not kind[0].isdisjoint(bases)]
    return bool(kinds) and not any(
        words.search(place.text) or any(_is_measured_in(value, unit) for value in place.values)
        for place in passages.index.places
        for _, unit, words in kinds
    )


def _is_measured_in(value: Value, unit: str) -> bool:
    if value.kind in ("date", "time", "period"):
        return unit == "second"
    return value.kind == "quantity" and (value.unit == unit or (unit == "money" and value.unit.isupper()))


@dataclass(frozen=True, slots=True)
class _Missing:
    """The content words of what characters `start` to `end` of a text say to be missing, each once."""

    start: int
    end: int
    words: tuple[Word, ...]


def missing_words(text: str, start: int, end: int) -> tuple[Word, ...]:
    """Return the content words of what the characters `start` to `end` of a text say to be missing, each
    once."""
    missing = _missing_in(text, start, end)
    return () if missing is None else missing.words


def _missing_in(text: str, start: int, end: int) -> _Missing | None:
    for pattern in (_WITHIN, _BEFORE, _AFTER):
        match = pattern.search(text, start, end)
        if match is None:
            continue
        first = max([start, *(sign.end() for sign in _OPENINGS.finditer(text, start, match.start()))])
        last = min([end, *(sign.start() for sign in _ENDINGS.finditer(text, match.end(), end))])
        before, behind = (first, match.start()), (match.end(), last)
        sides = {_WITHIN: [(match.start(), last)], _BEFORE: [before, behind], _AFTER: [behind, before]}
        for side in sides[pattern]:
            content = (word for clause in signed_clauses(text, *side) for word in clause.content)
            by_base = {word.base: word for word in content if word.base not in _IDLE}
            if by_base:
                return _Missing(first, last, tuple(by_base.values()))
    return None


def _plain(word: Word) -> str:
    """Return the base form of a word; of "clinic's" that of "clinic"."""
    return word.base.removesuffix("'s").removesuffix("\u2019s")


def _head(base: str) -> str:
    """Return the stem of a base form, of "allow in" that of "allow"."""
    return stem(base.partition("_")[0])


def _of_same_sense(grounds: Grounds, base: str) -> set[str]:
    """Return the words of the passages of the same sense as a base form."""
    return {word for word in grounds.related(base) if relation(base, word) in ("same", "synonym")}


def _claims(rest: str) -> bool:
    """Say whether the rest of a sentence says something of the matter, and not only what the passages tell or
    whom to ask."""
    if _ADVICE.match(rest) or _TELLING.search(rest):
        return False
    return any(map(str.isdigit, rest)) or sum(len(clause.content) for clause in signed_clauses(rest)) > 1
