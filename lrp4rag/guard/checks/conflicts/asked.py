"""Conflicts by the question: the answer says what one passage has, and another that speaks of what is asked
says otherwise, be it in other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lrp4rag.claims.extents import Extent, alike, differ
from lrp4rag.claims.places import Place, Token
from lrp4rag.claims.polarity import opposed
from lrp4rag.claims.subjects import MEASURES, Side, Span, beginnings, same_in_other_words
from lrp4rag.claims.units import CURRENCIES
from lrp4rag.claims.value import NUMERIC, Value
from lrp4rag.guard.checks.conflicts.disagreements import Disagreement, with_verb
from lrp4rag.guard.checks.conflicts.documents import are_siblings, are_versions
from lrp4rag.source import Source

LEAST = 2
"""Words of the question that tell what it is about, and stand in what the answer rests on, at least."""
MOST = 0.5
"""The part of these words that stand in it."""
_FREE = re.compile(r"\b(?:free(?: of charge)?|no (?:charge|fee)|at no cost)\b(?!-)", re.IGNORECASE)

Found = tuple[Place, Place, Disagreement, Span]
"""A sentence that the answer rests on, one of another passage, where they differ, and the characters of the
answer that this is about."""


def asked_for(
    question: Sequence[Place],
    response: Sequence[Place],
    passages: Sequence[Place],
    sources: Sequence[Source],
    tick: Callable[[], None],
) -> Iterator[Found]:
    """What another passage has in the place of a value of the answer, or denies of it."""
    asked = frozenset(word for one in question for word in _telling(one))
    places = [_Place(one, asked & beginnings(one.stems), asked & _context(one, sources)) for one in passages]
    about = [one for one in places if len(one.about) >= max(LEAST, MOST * len(asked))]
    said = [_Place(one, frozenset(), frozenset()) for one in response] if about else []
    for place in about:
        against = [
            one
            for one in places
            if one.passage != place.passage
            and place.about <= one.context
            and not are_siblings(sources[place.passage], sources[one.passage])
        ]
        for sentence in said:
            for other in against:
                tick()
                editions = are_versions(sources[place.passage], sources[other.passage])
                found = _otherwise(sentence, place, other, places, editions=editions)
                if found is not None:
                    yield place.statement, other.statement, *found


@dataclass(frozen=True, eq=False)
class _Place:
    """A sentence, the words of the question that it has, and those that it has with its heading, its title
    and the sentence before."""

    statement: Place
    about: frozenset[str]
    context: frozenset[str]

    @property
    def passage(self) -> int:
        return self.statement.passage

    @cached_property
    def extents(self) -> tuple[Extent, ...]:
        return self.statement.extents

    @cached_property
    def polarity(self) -> tuple[Value, ...]:
        return self.statement.polarity

    def has(self, value: Extent) -> bool:
        return any(_is(value, one) for one in self.extents)

    def place_of(self, start: int, end: int) -> Span:
        """Characters of the whole text."""
        return self.statement.start + start, self.statement.start + end


def _otherwise(
    sentence: _Place, place: _Place, other: _Place, places: Sequence[_Place], *, editions: bool
) -> tuple[Disagreement, Span] | None:
    """Where a sentence of the answer says what `place` does, and `other` another thing of the same."""
    for said in sentence.extents:
        own = next((x for x in place.extents if _is(said, x)), None)
        rivals = [] if own is None else [y for y in other.extents if alike(own, y) and differ(own, y)]
        if own is None or not rivals or said.kind not in NUMERIC or _has(places, other.passage, said):
            continue
        # Of several values, which one answers the question is not known, but for editions of one text.
        several = (sum(alike(own, x) for x in one.extents) > 1 for one in (place, other))
        if not editions and any(several):
            continue
        for rival in rivals:
            spans = Disagreement((own.start, own.end), (rival.start, rival.end))
            if not _has(places, place.passage, rival) and _are_same(place, other, spans):
                return spans, sentence.place_of(said.start, said.end)
    found = _free(sentence, place, other)
    if found is not None and _are_same(place, other, found[0]):
        return found
    found = _denied(sentence, place, other)
    return found if found is not None and _are_same(place, other, found[0], strict=True) else None


def _are_same(place: _Place, other: _Place, spans: Disagreement, *, strict: bool = False) -> bool:
    sides = Side(place.statement, spans.one), Side(other.statement, spans.other)
    return same_in_other_words(*sides, place.about | other.context, strict=strict)


def _is(one: Extent, other: Extent) -> bool:
    return alike(one, other) and not differ(one, other)


def _has(places: Sequence[_Place], number: int, value: Extent) -> bool:
    return any(one.has(value) for one in places if one.passage == number)


def _free(sentence: _Place, place: _Place, other: _Place) -> tuple[Disagreement, Span] | None:
    """What is free of charge in one passage and has a price in the other."""
    said, own, rival = (_FREE.search(one.statement.text) for one in (sentence, place, other))
    if said and own and not rival and (price := _price(other)):
        return Disagreement(own.span(), (price.start, price.end)), sentence.place_of(*said.span())
    if rival and not own and (price := _price(place)):
        named = next((x for x in sentence.extents if _is(x, price)), None)
        if named is not None:
            where = sentence.place_of(named.start, named.end)
            return Disagreement((price.start, price.end), rival.span()), where
    return None


def _price(some: _Place) -> Extent | None:
    return next((one for one in some.extents if one.first.unit in CURRENCIES), None)


def _denied(sentence: _Place, place: _Place, other: _Place) -> tuple[Disagreement, Span] | None:
    """Return a word with an opposite, or a verb, which the other passage denies of the same."""
    for one in sentence.polarity:
        kept = next((y for y in place.polarity if y.key == one.key), None)
        plain = kept is None and one.key[1] == 0 and not any(y.key[1] for y in place.polarity)
        if (kept is None and not plain) or any(one.key == x.key for x in other.polarity):
            continue
        for x in other.polarity:
            against_it = opposed(one, x) and not any(x.key == y.key for y in place.polarity)
            if against_it and (kept or (x.key[1] and _verb_behind(x, other) in sentence.statement.stems)):
                own = (0, len(place.statement.text)) if kept is None else (kept.start, kept.end)
                against = with_verb(other.statement, (x.start, x.end))
                return Disagreement(own, against), sentence.place_of(one.start, one.end)
    if any(y.key[1] for y in (*place.polarity, *sentence.polarity)):
        return None
    for x in other.polarity:
        verb = _verb_behind(x, other)
        if x.key != ("not", 1) or not verb:
            continue
        own_verb, said_verb = (_token(one.statement, verb) for one in (place, sentence))
        if own_verb is not None and said_verb is not None:
            spans = Disagreement((own_verb.start, own_verb.end), with_verb(other.statement, (x.start, x.end)))
            return spans, sentence.place_of(said_verb.start, said_verb.end)
    return None


def _verb_behind(negation: Value, place: _Place) -> str:
    """Return the stem of what a word with a "not" denies: the next one with content, "be" and the like left
    out."""
    tokens = (token for token in place.statement.tokens if token.start >= negation.end)
    return next((token.stem for token in tokens if token.stem), "")


def _token(statement: Place, stem: str) -> Token | None:
    return next((token for token in statement.tokens if token.stem == stem), None)


def _context(one: Place, sources: Sequence[Source]) -> frozenset[str]:
    """Beginnings of the words of a sentence, of its heading and title, and of the sentence before."""
    title = sources[one.passage].title or ""
    named = [word.lower() for word in re.findall(r"\w+", title[:500])]
    return beginnings([*one.stems, *one.lead_stems, *one.before_stems, *named])


def _telling(question: Place) -> frozenset[str]:
    return frozenset(
        word for word in beginnings(question.stems) if word not in MEASURES and not word.startswith("#")
    )
