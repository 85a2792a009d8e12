"""Whether two sentences that share the words of a question speak of the same, be it in other words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.slots import CLAUSE, Span
from lrp4rag.claims.units import UNITS
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import stem, word_set
from lrp4rag.guard.checks.conflicts.disagreements import Disagreement

BEGINNING = 4
"""Letters at the beginning of a stem by which words of one family are known: "give", "given"."""
_MEASURES = word_set(
    """
    long many much often cost costs price prices fee fees charge charges high old large far time times
    number amount current currently today people person pay paid limit maximum minimum need take does
    allowed possible delay latest exception
    """
)
MEASURES = frozenset(form[:BEGINNING] for word in _MEASURES | set(UNITS) for form in (word, stem(word)))
"""Beginnings of words that ask for a value, and do not tell of what."""
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|until|during|before|after|without|outside|except|while|under|over|only|between)\b",
    re.IGNORECASE,
)
_GROUPS = frozenset(
    word[:5]
    for word in word_set(
        """
        child children kids adults seniors pensioners students trainees apprentices interns contractors
        members guests visitors infants minors families groups part-time temporary
        """
    )
)
_JOINED = re.compile(r"(?:-| (?:(?:of|for|in|to|from|by|with|on) )?(?:the |a |an |its )?)")
_REASON = re.compile(r", (?:since|because|as)\b", re.IGNORECASE)


def of_the_same(
    one: Place, other: Place, found: Disagreement, asked: frozenset[str], *, strict: bool = False
) -> bool:
    """Say whether nothing tells what two sentences speak of apart, in their clauses and beside the words that
    are `asked` for: no group of people, condition, name or date that one has alone, and no word that each has
    another of before or behind the same word; with `strict` none that one of them has."""
    mine = _exclusive(one, other, found.one, asked)
    theirs = _exclusive(other, one, found.other, asked)
    sides = ((one, mine, found.one), (other, theirs, found.other))
    if any(token.stem[:5] in _GROUPS for token in (*mine, *theirs)):
        return False
    if any(_narrows(side, tokens, span, values=not strict) for side, tokens, span in sides):
        return False
    shared = one.stems & other.stems
    first, second = (_joined(side, tokens, shared) for side, tokens, _ in sides)
    return not (first or second if strict else first & second)


def _exclusive(one: Place, other: Place, span: Span, asked: frozenset[str]) -> list[Token]:
    """Words of the value's clause that the other sentence and the question do not have."""
    known = beginnings(other.stems | other.lead_stems | other.before_stems) | asked
    clause = _clause(one, span)
    return [
        token
        for token in one.tokens
        if token.stem
        and clause[0] <= token.start < clause[1]
        and not span[0] <= token.start < span[1]
        and token.stem[:BEGINNING] not in known
        and token.stem[:BEGINNING] not in MEASURES
    ]


def _clause(one: Place, span: Span) -> Span:
    """Return the characters of the clause that a value is in: what a comma before "since" begins is a
    reason."""
    ends = [match.start() for match in (*CLAUSE.finditer(one.text), *_REASON.finditer(one.text))]
    start = max((end for end in ends if end <= span[0]), default=0)
    return start, min((end for end in ends if end >= span[1]), default=len(one.text))


def _narrows(one: Place, tokens: Sequence[Token], span: Span, *, values: bool) -> bool:
    """Say whether words that the other lacks are a condition, a name or a time, or with `values` an
    amount."""
    for token in tokens:
        before = one.text[max(token.start - 30, 0) : token.start]
        condition = list(_CONDITION.finditer(before))
        if condition and not re.search(r"[,;:]|\d", before[condition[-1].end() :]):
            return True
    kinds = ("name", "date", "time", *(["quantity"] if values else []))
    return any(
        _among(value, tokens) and (value.kind != "quantity" or bool(value.unit))
        for value in one.own_values
        if value.kind in kinds and not span[0] <= value.start < span[1]
    )


def _among(value: Value, tokens: Sequence[Token]) -> bool:
    return any(value.start <= token.start < value.end for token in tokens)


def _joined(one: Place, tokens: Sequence[Token], shared: frozenset[str]) -> set[tuple[str, bool]]:
    """Return the shared words that a word which the other lacks stands right before, or behind."""
    every = [token for token in one.tokens if token.stem]
    alone = {token.start for token in tokens}
    found = set()
    for first, second in pairwise(every):
        if not _JOINED.fullmatch(one.text, first.end, second.start):
            continue
        if first.start in alone and second.stem in shared:
            found.add((second.stem, True))
        if second.start in alone and first.stem in shared:
            found.add((first.stem, False))
    return found


def beginnings(stems: Iterable[str]) -> frozenset[str]:
    """Of the words of a sentence, by which families of words are known."""
    return frozenset(stem[:BEGINNING] for stem in stems)
