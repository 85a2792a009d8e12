"""Which values of a response a passage has otherwise, and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lrp4rag.classifiers.verdict import Contradiction
from lrp4rag.features.context import Context, context_of
from lrp4rag.features.contrast import Claim, Scored, contrasts
from lrp4rag.features.record import Record
from lrp4rag.values.index import Occurrence
from lrp4rag.values.polarity import opposed, opposites
from lrp4rag.values.words import content_words

ALIKE = 0.5
"""Similarity of its surroundings from which another value contradicts one that no passage supports,
whatever the reader finds likelier."""


def contradictions(record: Record) -> list[Contradiction]:
    """In the order of the response: values for which the reader prefers what a passage has in their place, or
    which no passage has while a place that says nearly the same has another."""
    context = context_of(record.encoded)
    found = (_contradiction(claim, scored, context, record) for claim, scored in contrasts(record))
    return [one for one in found if one is not None]


def _contradiction(
    claim: Claim, scored: tuple[Scored, ...], context: Context, record: Record
) -> Contradiction | None:
    for occurrence, margin in _others(claim, scored, context, record):
        value = claim.value
        if margin > 0 or (not claim.support and occurrence.similarity >= ALIKE):
            return Contradiction(
                value.start,
                value.end,
                value.text,
                occurrence.value.text,
                occurrence.passage,
                occurrence.value.start,
                occurrence.value.end,
                margin,
            )
    return None


def _others(
    claim: Claim, scored: tuple[Scored, ...], context: Context, record: Record
) -> Iterator[tuple[Occurrence, float]]:
    """Where passages have another value, and the margin of that; the one with the largest margin first. A
    place that shares no word with the value's surroundings is about something else."""
    if claim.value.kind != "polarity":
        for one in scored:
            occurrence = one.alternative.occurrence
            if occurrence is not None and occurrence.similarity > 0:
                yield occurrence, one.margin
    elif scored and (place := _opposed(claim, context, record)) is not None:
        yield place, scored[0].margin


def _stated(claim: Claim, context: Context, words: Iterable[str]) -> Occurrence | None:
    """Where the most similar place says without a "not" what a value says with one: plain "is" and "has"
    are no values themselves."""
    similarities = context.index.similarities(words)
    number = max(range(len(similarities)), key=similarities.__getitem__, default=None)
    if number is None or similarities[number] < ALIKE:
        return None
    place = context.index.places[number]
    text = context.passages[place.passage][place.start : place.end]
    for other in opposites(claim.value):
        found = re.search(rf"\b{re.escape(other)}\b", text, re.IGNORECASE) if other else None
        if found is not None:
            value = replace(claim.value, start=found.start(), end=found.end(), text=found[0])
            return Occurrence(value.shifted(place.start), place.passage, similarities[number])
    return None


def _opposed(claim: Claim, context: Context, record: Record) -> Occurrence | None:
    """The most similar place that says the opposite of a polarity word, unless a better one says the same."""
    start, end = claim.sentence
    words = content_words(record.encoded.response[start:end])
    best: Occurrence | None = None
    for place, similarity in zip(context.index.places, context.index.similarities(words), strict=True):
        for one in place.values:
            if opposed(claim.value, one) and (best is None or similarity > best.similarity):
                best = Occurrence(one, place.passage, similarity)
    if best is None and claim.value.key[1]:
        best = _stated(claim, context, words)
    return best if best is not None and best.similarity >= claim.support else None
