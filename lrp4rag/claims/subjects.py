"""Whether two sentences speak of the same: one subject under the same conditions, maybe in other words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.units import UNITS
from lrp4rag.claims.words import stem, word_set

Span = tuple[int, int]

SHARED = 2
"""Content words that both sentences must have beside their values."""
LEAST = 0.4
"""The part of both sentences' words that they must share."""
BEGINNING = 4
"""Letters at the beginning of a stem by which words of one family are known: "give", "given"."""

_MEASURES = word_set(
    """
    long many much often cost costs price prices fee fees charge charges high old large far time times number
    amount current currently today people person pay paid limit maximum minimum need take does allowed
    possible delay latest exception
    """
)
MEASURES = frozenset(form[:BEGINNING] for word in _MEASURES | set(UNITS) for form in (word, stem(word)))
"""Beginnings of words that ask for a value, and do not tell of what."""
_WEAK = word_set(
    """
    accord advanc allow also amount apply approx automat begin begins current detail ensur follow general get
    gets give given gives got hand have hold kindly last lasts latest made make makes mean need needs new note
    now ones paid particul pay pays pleas possibl provid reason receiv requir see set simply start starts take
    takes taken tak total use used uses usual want within writ writt
    """
)
"""Stems that another wording adds or leaves out."""
_GROUPS = frozenset(
    word[:5]
    for word in word_set(
        """
        child children kids adults seniors pensioners students trainees apprentices interns contractors
        members guests visitors infants minors families groups part-time temporary
        """
    )
)
_WRITINGS = word_set("writing written advance addition general total particular principle")
_CONDITIONS = word_set(
    "if when whenever unless until during before after without outside except while under over only between"
)
_CIRCUMSTANCES = _CONDITIONS | word_set("on in for with inside within where at from since as among against")
_STOPS = word_set("to by is are was were be been must may can shall should will has have had or than")
_REASON = re.compile(r"(?:for (?:\w{1,20} )?reasons?|in order|in line|as of|from)\b", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[;:]|(?:,| (?=and|but))\s?(?:and|but|which|who|so|while|whereas)\b|, (?:since|because|as)\b",
    re.IGNORECASE,
)
"""What follows is said of something else, or a reason."""
_JOINED = re.compile(r"(?:-| (?:(?:of|for|in|to|from|by|with|on) )?(?:the |a |an |its )?)")


@dataclass(frozen=True)
class Side:
    """A sentence and the characters in it of the value that is looked at; `known` are those of the other
    values that the other sentence has too."""

    place: Place
    span: Span
    known: Sequence[Span] = ()

    @cached_property
    def reach(self) -> int:
        """The character at which the value's clause ends."""
        match = _CLAUSE.search(self.place.text, self.span[1])
        return match.start() if match else len(self.place.text)

    @cached_property
    def tokens(self) -> list[Token]:
        """Words with content there, without those of values that both have."""
        spans = (self.span, *self.known)
        return [
            token
            for token in self.place.tokens
            if token.stem and token.start < self.reach and not _in_any(token, spans)
        ]

    @property
    def stems(self) -> set[str]:
        """Of the words there, without the value."""
        return {
            token.stem
            for token in self.place.tokens
            if token.stem and token.start < self.reach and not _in_any(token, (self.span,))
        }

    @property
    def every(self) -> frozenset[str]:
        """Stems of the sentence, of its heading, and of the sentence before."""
        return self.place.stems | self.place.lead_stems | self.place.before_stems

    def alone(self, other: Side, known: Collection[str] = ()) -> list[Token]:
        """Words that the other side does not have, nor one of their families, which are not `known`
        either."""
        others = beginnings(other.every) | set(known)
        return [
            token for token in self.tokens if token.stem[:BEGINNING] not in others and token.stem not in known
        ]


def same_subject(one: Side, other: Side, *, strict: bool = False, several: bool = False) -> bool:
    """Say whether nothing tells apart what two sentences of the same words speak of: no word of the one
    stands in place of one of the other, and neither has a condition or a modifier that the other lacks. With
    `strict` no word more at all; with `several` what stands before may have changed in part."""
    mine, theirs = one.alone(other, _WEAK), other.alone(one, _WEAK)
    if (mine and theirs) or not _same_lead(one.place, other.place, several):
        return False
    shared = one.stems & other.every | other.stems & one.every
    more = len({token.stem for token in (*mine, *theirs)})
    weak = len(shared) < SHARED and (more or not shared or not one.place.lead_stems)
    if weak and not (not more and shared and one.stems == other.stems):
        return False
    if (more and strict) or len(shared) < LEAST * (len(shared) + more):
        return False
    return not any(
        _is_of_some(side, tokens, _CIRCUMSTANCES)
        or any(before for _, before in _joined(side, tokens, shared))
        for side, tokens in ((one, mine), (other, theirs))
    )


def same_in_other_words(one: Side, other: Side, asked: Collection[str], *, strict: bool = False) -> bool:
    """Say whether nothing tells apart what two sentences speak of that share the words that are `asked` for:
    no group of people, condition, name or date that one has alone, and no word that each has another of
    beside the same word; with `strict` none that one of them has."""
    known = MEASURES | set(asked)
    sides = ((one, one.alone(other, known)), (other, other.alone(one, known)))
    if any(_is_of_some(side, tokens, _CONDITIONS, values=not strict) for side, tokens in sides):
        return False
    shared = one.place.stems & other.place.stems
    first, second = (set(_joined(side, tokens, shared)) for side, tokens in sides)
    return not (first or second if strict else first & second)


def _same_lead(one: Place, other: Place, several: bool) -> bool:
    """Say whether headings, or what "it" stands for, are the same where both have them; one side's may be in
    the other's sentence."""
    short, full = (one, other) if one.points_back else (other, one)
    if not one.lead_stems or not other.lead_stems:
        return not short.points_back or bool(short.lead_stems & full.stems)
    if one.points_back != other.points_back:
        return bool(short.lead_stems & (full.stems | full.lead_stems))
    mine, theirs = one.lead_stems - other.lead_stems - _WEAK, other.lead_stems - one.lead_stems - _WEAK
    labels = any(word.startswith("#") for word in mine | theirs)
    both = len(one.lead_stems & other.lead_stems)
    return (
        not (mine and theirs and not several)
        and not labels
        and 2 * both >= min(len(one.lead_stems), len(other.lead_stems))
    )


def _is_of_some(side: Side, tokens: Sequence[Token], signs: frozenset[str], *, values: bool = True) -> bool:
    """Say whether words that the other side lacks are a group of people, a condition, a name or a time, or
    with `values` an amount: what is said is not said of all."""
    kinds = ("name", "date", "time", *(["quantity"] if values else []))
    spans = [
        (value.start, value.end)
        for value in side.place.own_values
        if value.kind in kinds and value.start != side.span[0] and (value.kind != "quantity" or value.unit)
    ]
    return any(
        token.stem[:5] in _GROUPS or _in_any(token, spans) or _is_condition(side.place, token, signs)
        for token in tokens
    )


def _is_condition(place: Place, token: Token, signs: frozenset[str]) -> bool:
    """Say whether a word stands in a condition: "on public holidays"."""
    at = place.tokens.index(token)
    for near in reversed(place.tokens[max(at - 6, 0) : at]):
        if re.search(r"[,;:()]", place.text[near.end : token.start]) or near.word in _STOPS:
            return False
        if near.word in signs:
            return token.word not in _WRITINGS and not _REASON.match(place.text, near.start)
    return False


def _joined(side: Side, tokens: Sequence[Token], shared: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield the shared words beside one that the other side lacks, and whether that stands before: "part-time
    employees", "partners of mothers"."""
    alone = {token.start for token in tokens if not token.word.endswith("ly")}
    for first, second in pairwise(token for token in side.place.tokens if token.stem):
        if _JOINED.fullmatch(side.place.text, first.end, second.start):
            if first.start in alone and second.stem in shared:
                yield second.stem, True
            if second.start in alone and first.stem in shared:
                yield first.stem, False


def beginnings(stems: Iterable[str]) -> frozenset[str]:
    """Return the beginnings of stems, by which families of words are known."""
    return frozenset(stem[:BEGINNING] for stem in stems)


def _in_any(token: Token, spans: Sequence[Span]) -> bool:
    return any(start <= token.start < end for start, end in spans)
