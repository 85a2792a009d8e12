"""Conflicts by the question: the answer says what one passage has, and another that speaks of what is asked
says otherwise, be it in other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lrp4rag.claims.differences import Difference, with_verb
from lrp4rag.claims.extents import Extent, agrees, alike, differ
from lrp4rag.claims.places import Place
from lrp4rag.claims.polarity import opposed
from lrp4rag.claims.subjects import MEASURES, Side, Span, beginnings, same_in_other_words
from lrp4rag.claims.units import CURRENCIES
from lrp4rag.claims.value import NUMERIC, Value
from lrp4rag.guard.checks.conflicts.documents import are_siblings, are_versions
from lrp4rag.source import Source

LEAST = 2
"""Words of the question that tell what it is about, and stand in what the answer rests on, at least."""
MOST = 0.5
"""The part of these words that stand in it."""
_FREE = re.compile(r"\b(?:free(?: of charge)?|no (?:charge|fee)|at no cost)\b(?!-)", re.IGNORECASE)


class Otherwise(NamedTuple):
    """A `place` that the answer rests on, an `other` of another passage, the characters in which they differ,
    and those of the answer that this is about."""

    place: Place
    other: Place
    spans: Difference
    said: Span


def asked_for(
    question: Sequence[Place],
    response: Sequence[Place],
    passages: Sequence[Place],
    sources: Sequence[Source],
    tick: Callable[[], None],
) -> Iterator[Otherwise]:
    """Yield what another passage has in the place of a value of the answer, or denies of it."""
    asked = (
        beginnings(stem for place in question for stem in place.stems if not stem.startswith("#")) - MEASURES
    )
    least = max(LEAST, MOST * len(asked))
    about = [(place, words) for place in passages if len(words := asked & beginnings(place.stems)) >= least]
    context = [(place, asked & _context(place, sources)) for place in passages] if about and response else []
    for place, words in about:
        against = [
            (other, known)
            for other, known in context
            if other.passage != place.passage
            and words <= known
            and not are_siblings(sources[place.passage], sources[other.passage])
        ]
        for sentence in response:
            for other, known in against:
                tick()
                editions = are_versions(sources[place.passage], sources[other.passage])
                for spans, said, strict in _differences(sentence, place, other, passages, editions=editions):
                    sides = Side(place, spans.one), Side(other, spans.other)
                    if same_in_other_words(*sides, words | known, strict=strict):
                        start = sentence.start
                        yield Otherwise(place, other, spans, (start + said[0], start + said[1]))
                        break


def _differences(
    sentence: Place, place: Place, other: Place, passages: Sequence[Place], *, editions: bool
) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield where a sentence of the answer says what `place` does, and `other` another thing; the characters
    of the sentence; and whether both must be of the same in each word."""
    for said in sentence.extents:
        own = next((x for x in place.extents if agrees(said, x)), None)
        if own is None or said.kind not in NUMERIC or _has(passages, other.passage, said):
            continue
        # Of several values, which one answers the question is not known, but for editions of one text.
        if not editions and any(sum(alike(own, x) for x in one.extents) > 1 for one in (place, other)):
            continue
        for rival in other.extents:
            if alike(own, rival) and differ(own, rival) and not _has(passages, place.passage, rival):
                yield Difference(_span(own), _span(rival)), _span(said), False
    yield from _free(sentence, place, other)
    yield from _denied(sentence, place, other)


def _has(passages: Sequence[Place], number: int, value: Extent) -> bool:
    return any(agrees(value, one) for place in passages if place.passage == number for one in place.extents)


def _span(value: Value | Extent) -> Span:
    return value.start, value.end


def _free(sentence: Place, place: Place, other: Place) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield what is free of charge in one passage and has a price in the other."""
    said, own, rival = (_FREE.search(one.text) for one in (sentence, place, other))
    if said and own and not rival and (price := _price(other)):
        yield Difference(own.span(), _span(price)), said.span(), False
    if rival and not own and (price := _price(place)):
        for named in sentence.extents:
            if agrees(named, price):
                yield Difference(_span(price), rival.span()), _span(named), False


def _price(place: Place) -> Extent | None:
    return next((one for one in place.extents if one.first.unit in CURRENCIES), None)


def _denied(sentence: Place, place: Place, other: Place) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield a word with an opposite, or a verb, which the other passage denies of the same."""
    own, theirs = ({word.key: word for word in some.polarity} for some in (place, other))
    is_plain = not any(word.key[1] for word in place.polarity)
    for said in sentence.polarity:
        plain = said.key not in own and not said.key[1] and is_plain
        if (said.key not in own and not plain) or said.key in theirs:
            continue
        for denial in other.polarity:
            verb = _verb_behind(denial, other)
            if (
                opposed(said, denial)
                and denial.key not in own
                and (not plain or (denial.key[1] and verb in sentence.stems))
            ):
                span = (0, len(place.text)) if plain else _span(own[said.key])
                yield Difference(span, with_verb(other, _span(denial))), _span(said), True
    if is_plain and not any(word.key[1] for word in sentence.polarity):
        for denial in other.polarity:
            verb = _verb_behind(denial, other) if denial.key == ("not", 1) else ""
            verbs = [
                next((token for token in one.tokens if token.stem == verb), None) for one in (place, sentence)
            ]
            if verb and verbs[0] and verbs[1]:
                spans = Difference((verbs[0].start, verbs[0].end), with_verb(other, _span(denial)))
                yield spans, (verbs[1].start, verbs[1].end), True


def _verb_behind(denial: Value, place: Place) -> str:
    """Return the stem of what a word with a "not" denies: the next one with content, "be" and the like left
    out."""
    return next((token.stem for token in place.tokens if token.start >= denial.end and token.stem), "")


def _context(place: Place, sources: Sequence[Source]) -> frozenset[str]:
    """Return beginnings of the words of a sentence, of its heading and title, and of the sentence before."""
    named = re.findall(r"\w+", (sources[place.passage].title or "")[:500].lower())
    return beginnings([*place.stems, *place.lead_stems, *place.before_stems, *named])
