"""Whether two sentences speak of the same subject under the same conditions, maybe in other words."""

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
"""Content words beside their values that both sentences must have."""
LEAST = 0.4
"""The share of both sentences' words that they must have in common."""
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
"""Beginnings of words that ask for a value and do not tell of what."""
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
"""Signs behind which the sentence speaks of something else, or gives a reason."""
_JOINED = re.compile(r"(?:-| (?:(?:of|for|in|to|from|by|with|on) )?(?:the |a |an |its )?)")


@dataclass(frozen=True)
class Side:
    """A sentence and the characters of the value in it that is looked at; `shared` are those of its further
    values that the other sentence has too."""

    place: Place
    span: Span
    shared: Sequence[Span] = ()

    @cached_property
    def reach(self) -> int:
        """The character at which the value's clause ends."""
        match = _CLAUSE.search(self.place.text, self.span[1])
        return match.start() if match else len(self.place.text)

    @cached_property
    def tokens(self) -> list[Token]:
        """The words with content up to there, without the value and those that both sentences have."""
        return self._tokens_outside((self.span, *self.shared))

    @property
    def stems(self) -> set[str]:
        """The stems of the words up to there, without the value."""
        return {token.stem for token in self._tokens_outside((self.span,))}

    def _tokens_outside(self, spans: Sequence[Span]) -> list[Token]:
        return [
            token
            for token in self.place.tokens
            if token.stem and token.start < self.reach and not _in_any(token, spans)
        ]

    @property
    def every(self) -> frozenset[str]:
        """The stems of the sentence, of its heading, and of the sentence before."""
        return self.place.stems | self.place.lead_stems | self.place.before_stems

    def alone(self, rival: Side, ignored: Collection[str]) -> list[Token]:
        """Return the words of which the rival has none of their families; those `ignored` (stems, or their
        beginnings) are left out."""
        families = beginnings(rival.every) | set(ignored)
        return [
            token
            for token in self.tokens
            if token.stem[:BEGINNING] not in families and token.stem not in ignored
        ]


def same_subject(first: Side, second: Side, *, strict: bool = False, several: bool = False) -> bool:
    """Say whether nothing tells apart what two sentences of the same words speak of: no word of the first
    stands in the place of one of the second, and neither has a condition or a modifier that the other lacks.
    With `strict`, neither has any word more; with `several`, what stands before may differ in part."""
    mine, theirs = first.alone(second, _WEAK), second.alone(first, _WEAK)
    if (mine and theirs) or not _same_lead(first.place, second.place, several):
        return False
    shared = first.stems & second.every | second.stems & first.every
    more = len({token.stem for token in (*mine, *theirs)})
    weak = len(shared) < SHARED and (more or not shared or not first.place.lead_stems)
    if weak and not (not more and shared and first.stems == second.stems):
        return False
    if (more and strict) or len(shared) < LEAST * (len(shared) + more):
        return False
    return not any(
        _is_of_some(side, tokens, _CIRCUMSTANCES)
        or any(before for _, before in _joined(side, tokens, shared))
        for side, tokens in ((first, mine), (second, theirs))
    )


def same_in_other_words(
    first: Side, second: Side, question: Collection[str], *, strict: bool = False
) -> bool:
    """Say whether nothing tells apart what two sentences speak of that share the words of a question (stems
    or their beginnings): neither has a group of people, a condition, a name or a date alone, nor do
    both have a word of their own beside the same word; with `strict`, neither has a word of its own there."""
    ignored = MEASURES | set(question)
    sides = ((first, first.alone(second, ignored)), (second, second.alone(first, ignored)))
    if any(_is_of_some(side, tokens, _CONDITIONS, values=not strict) for side, tokens in sides):
        return False
    shared = first.place.stems & second.place.stems
    mine, theirs = (set(_joined(side, tokens, shared)) for side, tokens in sides)
    return not (mine or theirs if strict else mine & theirs)


def _same_lead(first: Place, second: Place, several: bool) -> bool:
    """Say whether headings, or what "it" stands for, are the same where both have them; those of one side may
    be in the other's sentence."""
    short, full = (first, second) if first.points_back else (second, first)
    if not first.lead_stems or not second.lead_stems:
        return not short.points_back or bool(short.lead_stems & full.stems)
    if first.points_back != second.points_back:
        return bool(short.lead_stems & (full.stems | full.lead_stems))
    mine, theirs = first.lead_stems - second.lead_stems - _WEAK, second.lead_stems - first.lead_stems - _WEAK
    labels = any(word.startswith("#") for word in mine | theirs)
    both = len(first.lead_stems & second.lead_stems)
    return (
        not (mine and theirs and not several)
        and not labels
        and 2 * both >= min(len(first.lead_stems), len(second.lead_stems))
    )


def _is_of_some(side: Side, tokens: Sequence[Token], signs: frozenset[str], *, values: bool = True) -> bool:
    """Say whether words that the other side lacks are a group of people, a condition, a name or a time, or
    with `values` an amount: the sentence is not true of all."""
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
