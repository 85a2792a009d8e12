"""`Claim`: a clause of a response, what it is said of, and its values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lrp4rag.claims.clauses import clauses
from lrp4rag.claims.find import find_values
from lrp4rag.claims.places import Token, tokens_of
from lrp4rag.claims.surroundings import NOTHING, Surroundings
from lrp4rag.claims.value import Kind, Value, agree
from lrp4rag.util.sentences import sentences_in

Span = tuple[int, int]
Origin = Literal["clause", "before", "question", ""]

COMPARED: frozenset[Kind] = frozenset({"quantity", "date", "time", "period", "name"})
"""Kinds of values that fill a slot; words with an opposite and absences are compared elsewhere."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The named things that something is said of, and where they stand: in its clause, before it in the
    response, or in the question; none with the origin ""."""

    names: tuple[Value, ...] = ()
    origin: Origin = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """Characters `start` to `end` (exclusive) of a response, that `text`, which state one thing.

    `sentence` are the characters of the sentence around it. `values` and `tokens` are the clause's, with the
    response's offsets; tokens inside a value are left out.
    """

    start: int
    end: int
    text: str
    sentence: Span
    subject: Subject
    values: tuple[Value, ...]
    tokens: tuple[Token, ...]


class Part(NamedTuple):
    """Characters `start` to `end` of a sentence that are a clause, its values that fill a slot, and the words
    with content outside of these; all offsets are the sentence's."""

    start: int
    end: int
    values: tuple[Value, ...]
    tokens: tuple[Token, ...]


def claims_of(
    response: str,
    question: str = "",
    around: Surroundings = NOTHING,
    sentences: Sequence[Span] | None = None,
) -> list[Claim]:
    """Return the clauses of a response in their order. `around` are the passages; `sentences` are those of
    the response, which are looked for where they are not given."""
    asked = Subject(names_in(find_values(question, around)), "question")
    last = asked if asked.names else Subject()
    claims: list[Claim] = []
    for start, end in sentences_in(response) if sentences is None else sentences:
        for begin, stop, values, tokens in parts_of(response[start:end], around):
            names = names_in(values)
            subject = Subject(names, "clause") if names else last
            if names:
                last = Subject(names, "before")
            claims.append(
                Claim(
                    start + begin,
                    start + stop,
                    response[start + begin : start + stop],
                    (start, end),
                    subject,
                    tuple(value.shifted(start) for value in values),
                    tuple(
                        Token(token.start + start, token.end + start, token.word, token.stem)
                        for token in tokens
                    ),
                )
            )
    return claims


def names_in(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the names among values, without codes."""
    return tuple(value for value in values if value.kind == "name" and value.unit != "code")


def share_name(first: Sequence[Value], second: Sequence[Value]) -> bool:
    """Say whether a name of the one agrees with a name of the other."""
    return any(agree(name, other) for name in first for other in second)


def are_siblings(first: Sequence[Value], second: Sequence[Value]) -> bool:
    """Say whether names differ and share a word: "Brio 3" and "Brio 5"."""
    return not share_name(first, second) and any(
        set(name.key) & set(other.key) for name in first for other in second
    )


def parts_of(sentence: str, around: Surroundings = NOTHING) -> list[Part]:
    """Return the clauses of a sentence in their order."""
    values = [value for value in find_values(sentence, around) if value.kind in COMPARED]
    tokens = [
        token
        for token in tokens_of(sentence)
        if token.stem and not any(value.start <= token.start < value.end for value in values)
    ]
    amounts = [value for value in values if value.kind not in ("name", "period")]
    spans = clauses(sentence, amounts)
    starts = [clause.start for clause in spans]

    def number(start: int) -> int:
        """Clauses leave out heads and signs between them; those belong to the clause before."""
        return max(bisect_right(starts, start) - 1, 0)

    parts = []
    for k, clause in enumerate(spans):
        inside = tuple(value for value in values if number(value.start) == k)
        words = tuple(token for token in tokens if number(token.start) == k)
        first = min((clause.start, *(value.start for value in inside), *(token.start for token in words)))
        last = max((clause.end, *(value.end for value in inside), *(token.end for token in words)))
        parts.append(Part(first, last, inside, words))
    return parts
