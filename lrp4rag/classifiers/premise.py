"""Values that a question supposes, that no passage has, and that the response repeats.

A reader finds likely what it has just read, in a question too: "Items may be returned within 30 days, right?"
supports "30 days" as a passage would. So such a sentence is also read after the question as the passages
would have it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index, rivals
from lrp4rag.claims.value import Value, agree
from lrp4rag.claims.words import content_words
from lrp4rag.example import Example
from lrp4rag.util.sentences import sentences_in

KINDS = ("quantity", "date", "time", "name")
_YES = re.compile(
    r"\W*(?:yes|yeah|correct|right|indeed|exactly|that is (?:right|correct)|that's (?:right|correct))\b", re.I
)
_DENIED = re.compile(
    r"(?:\A\W*no\b.*|(?:\b(?:no|not|never|nor|without)|n['\u2019]t)(?:\s+\w+){0,3}\s+)\Z",
    re.IGNORECASE | re.DOTALL,
)
"""Before a value: it is not said, but denied."""


@dataclass(frozen=True, slots=True)
class Supposed:
    """A value of the question, and what the most similar place of the passages has instead."""

    value: Value
    instead: Value


@dataclass(frozen=True, slots=True)
class Premise:
    """The example with its question as the passages would have it, and which sentences of the response (their
    numbers) repeat what it supposed."""

    example: Example
    sentences: tuple[int, ...]


def premise_of(example: Example) -> Premise | None:
    """None where the response repeats nothing that the question alone supposes."""
    asked = any(span.kind == "question" for span in example.spans)
    supposed = _supposed(example.question, tuple(example.passages)) if asked else ()
    if not supposed:
        return None
    response = example.response or ""
    found = tuple(
        number
        for number, (start, end) in enumerate(sentences_in(response))
        if _repeats(response[start:end], supposed)
    )
    return Premise(_as_passages_say(example, supposed), found) if found else None


@lru_cache(maxsize=4)
def _supposed(question: str, passages: tuple[str, ...]) -> tuple[Supposed, ...]:
    """It is kept for the next sentence of an answer that is being written."""
    values = [one for one in find_values(question) if one.kind in KINDS]
    if not values:
        return ()
    index, found = Index(passages), list[Supposed]()
    for value in values:
        around = question[: value.start] + question[value.end :]
        occurrences = index.occurrences(value, index.similarities(content_words(around)))
        others = [one for one in rivals(value, occurrences) if one.similarity > 0]
        if others and not any(agree(value, one.value) for one in occurrences):
            found.append(Supposed(value, others[0].value))
    return tuple(found)


def _repeats(sentence: str, supposed: Sequence[Supposed]) -> bool:
    """Whether it says a supposed value as its own: neither denied, nor beside what the passages have; a name
    only where it begins with a yes."""
    values = find_values(sentence)
    affirmed = _YES.match(sentence) is not None
    return any(
        agree(one, each.value) and not any(agree(other, each.instead) for other in values)
        for one in values
        if not _DENIED.search(sentence[: one.start])
        for each in supposed
        # A name may be another one's short form, or a subject that passages call otherwise.
        if affirmed or each.value.kind != "name"
    )


def _as_passages_say(example: Example, supposed: Sequence[Supposed]) -> Example:
    question = example.question
    for one in sorted(supposed, key=lambda one: -one.value.start):
        question = question[: one.value.start] + one.instead.text + question[one.value.end :]
    place = next(span for span in example.spans if span.kind == "question")  # there is one: see `premise_of`
    by = len(question) - (place.end - place.start)
    spans = tuple(
        replace(span, end=span.end + by)
        if span is place
        else replace(span, start=span.start + by, end=span.end + by)
        if span.start >= place.end
        else span
        for span in example.spans
    )
    prompt = example.prompt[: place.start] + question + example.prompt[place.end :]
    return replace(example, question=question, prompt=prompt, spans=spans)
