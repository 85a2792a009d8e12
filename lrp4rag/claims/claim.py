"""`Claim`: a clause of a response, what it is said of, and its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.value import Value, agree

Origin = Literal["clause", "before", "question", ""]


@dataclass(frozen=True, slots=True)
class Subject:
    """The named things that something is said of, and where they stand: in its clause, before it in the
    response, or in the question; none with the origin ""."""

    names: tuple[Value, ...] = ()
    origin: Origin = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """Characters `start` to `end` (exclusive) of a response, that `text`, which state one thing.

    `sentence` is the sentence around it. `values` and `tokens` are the clause's, with the response's offsets;
    tokens inside a value are left out.
    """

    start: int
    end: int
    text: str
    sentence: Place
    subject: Subject
    values: tuple[Value, ...]
    tokens: tuple[Token, ...]


def claims_of(
    sentences: Iterable[Place], question_values: Sequence[Value] = (), last: Subject | None = None
) -> list[Claim]:
    """Return the clauses of the sentences of a response in their order; `asked` are the values of its
    question, and `last` is the subject of the clause before these sentences."""
    if last is None:
        names = names_in(question_values)
        last = Subject(names, "question") if names else Subject()
    elif last.origin == "clause":
        last = replace(last, origin="before")
    claims: list[Claim] = []
    for sentence in sentences:
        for start, end, values, tokens in sentence.parts:
            subject = last
            if names := names_in(values):
                subject, last = Subject(names, "clause"), Subject(names, "before")
            shift = sentence.start
            claims.append(
                Claim(
                    start + shift,
                    end + shift,
                    sentence.text[start:end],
                    sentence,
                    subject,
                    tuple(value.shifted(shift) for value in values),
                    tuple(
                        replace(token, start=token.start + shift, end=token.end + shift) for token in tokens
                    ),
                )
            )
    return claims


def names_in(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the names among values, without codes."""
    return tuple(value for value in values if value.kind == "name" and value.unit != "code")


def share_name(first: Sequence[Value], second: Sequence[Value]) -> bool:
    """Say whether a name of the first agrees with a name of the second."""
    return any(agree(name, second_name) for name in first for second_name in second)


def are_siblings(first: Sequence[Value], second: Sequence[Value]) -> bool:
    """Say whether names differ and share a word: "Brio 3" and "Brio 5"."""
    return not share_name(first, second) and any(
        set(name.key) & set(second_name.key) for name in first for second_name in second
    )
