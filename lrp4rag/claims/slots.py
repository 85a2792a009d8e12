"""Whether two values of two sentences fill the same slot: the same subject under the same conditions."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.words import word_set

Span = tuple[int, int]

SHARED = 2
"""Content words that both sentences must have beside their values."""
LEAST = 0.4
"""The part of both sentences' words that they must share."""

_WEAK = word_set(
    """
    accord advanc allow also amount apply approx automat begin begins current default detail ensur follow
    general get gets give given gives got hand have hold kindly last lasts latest limit made make makes mean
    need needs new note now number ones order paid particul pay pays person pleas possibl provid reason
    receiv requir see set simply start starts take takes taken tak total use used uses usual want within writ
    writt
    """
) - {"default", "limit", "order", "number", "person"}
"""Stems that another wording adds or leaves out."""
_WRITINGS = word_set("writing written advance addition general total particular principle")
_RESTRICTS = word_set(
    """
    if when whenever unless until during on in after before for with without outside inside within except
    while where under over at from since as only between among against
    """
)
_STOPS = word_set(
    """
    to by is are was were be been must may can shall should will has have had or than
    """
)
CLAUSE = re.compile(r"[;:]|(?:,| (?=and|but))\s?(?:and|but|which|who|so|while|whereas)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Side:
    """A sentence and the characters in it of the value that is looked at; `known` are those of the other
    values that the other sentence has too."""

    statement: Place
    span: Span
    known: Sequence[Span] = ()

    @property
    def reach(self) -> int:
        """The character at which the value's clause ends: what follows is said of something else."""
        match = CLAUSE.search(self.statement.text, self.span[1])
        return match.start() if match else len(self.statement.text)

    @property
    def tokens(self) -> list[Token]:
        """Words with content up to there, without those of values."""
        spans = (self.span, *self.known)
        return [
            token
            for token in self.statement.tokens
            if token.stem and token.start < self.reach and not _in_any(token, spans)
        ]

    @property
    def stems(self) -> set[str]:
        """Words with content up to there, without those of the value."""
        tokens = (token for token in self.statement.tokens if not _in_any(token, (self.span,)))
        return {token.stem for token in tokens if token.stem and token.start < self.reach}


def same_slot(one: Side, other: Side, *, strict: bool, several: bool) -> bool:
    """Say whether nothing tells what they speak of apart: no word of the one stands in place of one of the
    other, and neither has a condition or a modifier that the other lacks. With `strict` no word more at all;
    with `several` what stands before may have changed in part."""
    if not _same_lead(one.statement, other.statement, several):
        return False
    mine, theirs = _only(one, other), _only(other, one)
    shared = one.stems & _words(other) | other.stems & _words(one)
    if mine and theirs:
        return False
    more = len({token.stem for token in (*mine, *theirs)})
    weak = len(shared) < SHARED and (more or not shared or not one.statement.lead_stems)
    if weak and not (not more and shared and one.stems == other.stems):
        return False
    if (more and strict) or len(shared) < LEAST * (len(shared) + more):
        return False
    return not any(
        _restricts(side, token, shared) for side, rest in ((one, mine), (other, theirs)) for token in rest
    )


def _same_lead(one: Place, other: Place, several: bool) -> bool:
    """Say whether headings, or what "it" stands for, are the same where both have them; one side's may be in
    the other's sentence."""
    if not one.lead_stems or not other.lead_stems:
        short, full = (one, other) if one.points_back else (other, one)
        return not short.points_back or bool(short.lead_stems & full.stems)
    if one.points_back != other.points_back:
        short, full = (one, other) if one.points_back else (other, one)
        return bool(short.lead_stems & (full.stems | full.lead_stems))
    mine, theirs = one.lead_stems - other.lead_stems - _WEAK, other.lead_stems - one.lead_stems - _WEAK
    if mine and theirs and not several:
        return False
    both = len(one.lead_stems & other.lead_stems)
    return 2 * both >= min(len(one.lead_stems), len(other.lead_stems)) and not _labels(mine | theirs)


def _labels(stems: Collection[str]) -> set[str]:
    return {stem for stem in stems if stem.startswith("#")}


def _words(side: Side) -> frozenset[str]:
    return side.statement.stems | side.statement.lead_stems | side.statement.before_stems


def _only(side: Side, other: Side) -> list[Token]:
    """Words with content that the other does not have, nor one of the same beginning."""
    known = _words(other)
    beginnings = {word[:5] for word in known if len(word) >= 5}
    return [
        token
        for token in side.tokens
        if token.stem not in known and token.stem not in _WEAK and token.stem[:5] not in beginnings
    ]


def _restricts(side: Side, token: Token, shared: Collection[str]) -> bool:
    """Say whether a word makes a condition ("on public holidays"), or tells a noun from others ("part-time
    employees")."""
    tokens = side.statement.tokens
    at = tokens.index(token)
    if at + 1 < len(tokens) and token.start < side.span[0]:
        after = tokens[at + 1]
        between = side.statement.text[token.end : after.start]
        if after.stem in shared and between in (" ", "-") and not token.word.endswith("ly"):
            return True
        if after.word == "of" and any(near.stem in shared for near in tokens[at + 2 : at + 4]):
            return True  # "partners of mothers"
    for near in reversed(tokens[max(at - 6, 0) : at]):
        if re.search(r"[,;:()]", side.statement.text[near.end : token.start]) or near.word in _STOPS:
            return False
        if near.word in _RESTRICTS:
            return token.word not in _WRITINGS and not _gives_reason(side.statement.text, near.start)
    return False


def _gives_reason(text: str, start: int) -> bool:
    return bool(
        re.match(
            r"(?:for (?:\w{1,20} )?reasons?|in order|in line|as of|from)\b", text[start : start + 40], re.I
        )
    )


def _in_any(token: Token, spans: Sequence[Span]) -> bool:
    return any(start <= token.start < end for start, end in spans)
