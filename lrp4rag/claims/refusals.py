"""Sentences that say that the passages lack what was asked for: whether these have it, by words.

"The documents do not mention a fee for leaving early" is right where no passage knows of a fee, and wrong
where one does. To a comparer both are unsupported: no passage says what passages do not say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lrp4rag.claims.answer import Passages
from lrp4rag.claims.borrowed import Subjects
from lrp4rag.claims.grounds import Counterpart, Grounds
from lrp4rag.claims.lexicon import Senses, relation
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import Word, signed_clauses
from lrp4rag.claims.words import word_set

_SENTENCES = 3
LEAST = 0.5
"""How much of the missing thing, 0 to 1, a clause of the passages must say for it to be there."""

_SOURCES = (
    "(?:passages?|texts?|documents?|documentation|sources?|pages?|information|leaflets?|articles?|guides?"
    "|manuals?|reports?|excerpts?|extracts?|handbook|sections?|notices?|e-?mails?|letters?|minutes|materials?"
    "|entry|entries|details|context|listings?|descriptions?|website|brochure|policy|terms|rules?|contract"
    "|notes?|statements?|records?|lists?|they|it|I|we|none|neither)"
)
_TELL = (
    "(?:mention|state|specify|give|say|name|list|tell|explain|reveal|indicate|describe|contain|provide|discuss"
    "|address|answer|quote|report|record|make clear|include|cover)s?"
)
_TOLD = (
    "(?:mentioned|stated|specified|said|given|named|listed|explained|revealed|indicated|described|discussed"
    "|addressed|answered|quoted|reported|recorded|documented|known|clear|told)"
)
_BE = r"(?:is|are|was|were|remains?|has been|have been)"
_NOT = r"(?:\s*n['\u2019]t|\s+not|\s+never|\s+nowhere|not)"
_AFTER = re.compile(
    rf"\b{_SOURCES}\b[^.;:!?\n]{{0,60}}?\b(?:do|does|did|can|could){_NOT}(?: \w+){{0,2}}? {_TELL}\b"
    rf"|\b{_SOURCES}\b[^.;:!?\n]{{0,40}}?\b(?:give|contain|offer|provide|make|state|have|has|say|list|name)s?"
    r" (?:no|nothing)\b"
    r"|\b(?:I|we) (?:can|could|do)(?:not| not|n['\u2019]t) (?:find|tell|see|say|answer)\b"
    r"|\bno (?:information|mention|details?|indication|word|answer|guidance|figures?)\b"
    r"(?= (?:on|about|of|as to|regarding|for|whether)\b)"
    rf"|\bnothing\b(?= (?:about|as to|regarding)\b|[^.;]{{0,20}}\b(?:said|mentioned|stated)\b)",
    re.IGNORECASE,
)
"""What is missing stands behind it."""
_BEFORE = re.compile(
    rf"\b{_BE}{_NOT}(?: \w+){{0,2}}? {_TOLD}\b"
    r"|\b(?:left open|unstated|unspecified|missing from the)\b",
    re.IGNORECASE,
)
"""What is missing stands before it, or is a clause behind it: "it is not stated whether"."""
_WITHIN = re.compile(rf"\bno\b[^,.;:!?\n]{{1,60}}? {_BE} {_TOLD}\b", re.IGNORECASE)
"""What is missing stands in it."""
_OPENINGS = re.compile(r"[;:(\n]|,? (?:but|and|though|although|so|yet|while) ")
_ENDINGS = re.compile(
    r"[;:\n]|(?<=.{4}),? (?:but|though|although|so|yet) |, (?:and|only|please|as) |(?<=\w)\.\s"
)
_HEDGED = re.compile(
    r"\b(?:how to|specific\w*|direct(?:ly)?|explicit(?:ly)?|detail(?:s|ed)?|enough|sufficient|general|beyond"
    r"|definit(?:e|ive)|further|more|additional|if)\b",
    re.IGNORECASE,
)
"""Passages may speak of something and yet not say so much of it, or how it is done."""
_IDLE = word_set(
    """
say said mention state specify give list name tell explain reveal indicate describe contain provide include
cover discuss address answer find record passage text document source email e-mail mail message minutes
article statement page notice information detail nothing word know known clear neither open leave
unfortunately however conversation transcript interview report table excerpt context post leaflet guidance
manual documentation product description handbook section entry material terms note guide website do need
happen apply long use us ask contact suggest afraid i'm sorry give_in come_in anything anywhere whether far
little specific exact further available extract kind like thing way much many get have make take quote texts
documents passages pages articles leaflets excerpts entries notes
"""
)
"""Words of such a sentence that do not tell what is missing."""

_KINDS = word_set(
    """
age amount background cause charge cost date day deadline duration fee figure hour length limit location
long month name number old period place price procedure rate reason size sum time way weight year
"""
)
"""Kinds of answers, which passages give without a word for them: "by 10 July" of a deadline."""

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
    """Return what the characters `start` to `end` of a text say to be missing that the question asks for:
    there, where a sentence that is not about something else says its words; absent, where no passage knows
    one that was asked for; None for no such sentence, and where the words do not tell."""
    grounds, words = passages.grounds, missing_words(text, start, end)
    asked = [word for word in words if _is_asked(grounds, word)]
    if not asked or not grounds.clauses:
        return None
    unknown = [word for word in words if not _is_known(grounds, word)]
    if any(word in unknown and word.base not in _KINDS for word in asked):
        return Refusal(start, end, "absent")
    if unknown or all(word.base.isdigit() for word in words) or _HEDGED.search(text, start, end):
        return None
    subjects = Subjects(passages.question, passages.index)
    for place, score in grounds.aligned(words).sentences(_SENTENCES):
        if score < LEAST or subjects.is_of_another(place, text[start:end]):
            continue
        if _says_more(grounds, place, words):
            there = Counterpart(start, end, place.passage, place.start, place.end, score)
            return Refusal(start, end, "there", there)
    return None


def missing_words(text: str, start: int, end: int) -> tuple[Word, ...]:
    """Return the content words of what the characters `start` to `end` of a text say to be missing, each
    once."""
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
            found = {word.base: word for word in content if word.base not in _IDLE}
            if found:
                return tuple(found.values())
    return ()


def _is_known(grounds: Grounds, word: Word) -> bool:
    """Say whether passages have a word, or one of the same sense."""
    return any(relation(word.base, base) in ("same", "synonym") for base in grounds.related(word.base))


def _says_more(grounds: Grounds, place: Place, words: Sequence[Word]) -> bool:
    """Say whether a sentence of the passages has more than some words and those of the question, as a heading
    has not."""
    known = Senses(word.base for word in (*words, *grounds.asked))
    return any(word.base not in known for word in place.content)


def _is_asked(grounds: Grounds, word: Word) -> bool:
    return any(
        word.base == other.base or relation(word.base, other.base) in ("same", "synonym")
        for other in grounds.asked
    )
