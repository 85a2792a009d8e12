"""`Conflicts`: passages that contradict each other, in the same words, or where the answer says what one
passage has and another says otherwise of what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from operator import attrgetter, itemgetter
from typing import Any, ClassVar, cast

from lrp4rag.claims.differences import Difference, difference, with_verb
from lrp4rag.claims.extents import Extent, agrees, alike, differ
from lrp4rag.claims.index import Index
from lrp4rag.claims.names import find_names
from lrp4rag.claims.places import Place, places_of
from lrp4rag.claims.polarity import opposed
from lrp4rag.claims.subjects import MEASURES, Side, Span, beginnings, same_in_other_words
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.units import CURRENCIES
from lrp4rag.claims.value import NUMERIC, Value
from lrp4rag.guard.checks.check import CheckInput, Detail, Finding, Need
from lrp4rag.guard.checks.gate.passage import read_passage
from lrp4rag.source import Source
from lrp4rag.util.text import WORD, normal, one_line, words_of

LEAST = 2
"""Words of the question that tell what it is about, and stand in what the answer rests on, at least."""
ASKED_SHARE = 0.5
"""The part of these words that stand in it."""
_FREE = re.compile(r"\b(?:free(?: of charge)?|no (?:charge|fee)|at no cost)\b(?!-)", re.IGNORECASE)


Sides = tuple[tuple[Place, Span], tuple[Place, Span]]
"""Two sentences, and the characters in which they differ."""


def asked_for(
    inputs: CheckInput, question: Sequence[Place], response: Sequence[Place], passages: Sequence[Place]
) -> Iterator[tuple[Sides, Span]]:
    """Yield what another passage has in the place of a value of the answer, or denies of it, with the
    characters of the answer that this is about; the side that the answer rests on comes first."""
    sources = inputs.sources
    asked = (
        beginnings(stem for place in question for stem in place.stems if not stem.startswith("#")) - MEASURES
    )
    least = max(LEAST, ASKED_SHARE * len(asked))
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
                inputs.tick()
                editions = are_versions(sources[place.passage], sources[other.passage])
                for spans, said, strict in _differences(sentence, place, other, passages, editions=editions):
                    sides = Side(place, spans.one), Side(other, spans.other)
                    if same_in_other_words(*sides, words | known, strict=strict):
                        start = sentence.start
                        yield ((place, spans.one), (other, spans.other)), (start + said[0], start + said[1])
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
    title = _title_words(sources[place.passage])
    return beginnings([*place.stems, *place.lead_stems, *place.before_stems, *title])


_VERSION = re.compile(r"v?\d+")


def are_versions(one: Source, other: Source) -> bool:
    """Say whether they are of two versions of one document."""
    return _same_document(one, other) and not _same_version(one, other)


def are_of_one_text(one: Source, other: Source) -> bool:
    """Say whether they are known to be of the same version of one document, which rarely contradicts
    itself."""
    return _same_document(one, other) and _same_version(one, other) and one.version is not None


def are_siblings(one: Source, other: Source) -> bool:
    """Say whether their titles tell two documents of one kind: "Drill X2 Manual" and "Drill X5 Manual", but
    not "Leave Policy v2" and "Leave Policy v3"."""
    first, second = (set(_title_words(source)) for source in (one, other))
    only = (first - second, second - first)
    differ = all(any(not _VERSION.fullmatch(word) for word in words) for words in only)
    return bool(first & second) and differ


def names_one(question: str, one: Source, other: Source) -> bool:
    """Say whether the question names something that only one of them names, where the other names something
    else: they are about different things, and do not contradict each other."""
    texts = [f"{source.title or ''} {source.text}" for source in (one, other)]
    known = [_folded(text) for text in texts]
    for name in find_names(question, Surroundings(" ".join(texts))):
        words = _folded(name.text)
        if (words <= known[0]) != (words <= known[1]):
            without = int(words <= known[0])
            others = (_folded(one.text) for one in find_names(texts[without]))
            return any(not other <= known[1 - without] for other in others)
    return False


def newer(one: Source, other: Source) -> int | None:
    """0 for the first, 1 for the second: the one that is effective later; without dates, the one with the
    higher version of the same document. None where neither is known to be."""
    passages = [read_passage(number, source, UTC) for number, source in enumerate((one, other))]
    starts = [passage.validity.period.start for passage in passages]
    if starts[0] and starts[1] and starts[0] != starts[1]:
        return int(starts[1] > starts[0])
    same = _same_document(one, other)
    return next((k for k in (0, 1) if same and passages[k].replaces(passages[1 - k])), None)


def named(number: int, source: Source) -> str:
    """'2 (Leave Policy 3.1, from 2024-01-01)'; the number counts from 0."""
    name = " ".join(one_line(part, 60) for part in (source.title, source.version) if part)
    known = [name, f"from {one_line(source.effective, 30)}" if source.effective else ""]
    about = ", ".join(part for part in known if part)
    return f"{number + 1} ({about})" if about else str(number + 1)


def _same_document(one: Source, other: Source) -> bool:
    first, second = (
        [word for word in _title_words(source) if not _VERSION.fullmatch(word)] for source in (one, other)
    )
    return bool(first) and first == second


def _same_version(one: Source, other: Source) -> bool:
    return (one.title, one.version, one.effective) == (other.title, other.version, other.effective)


def _title_words(source: Source) -> list[str]:
    return words_of((source.title or "")[:500])


def _folded(text: str) -> set[str]:
    return {normal(word.casefold()) for word in WORD.findall(text)}


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Statements that are equal but for a value: "10 days" in a passage, "14 days" in another.

    `share` is the part of the rarer words (0 to 1) that two sentences must share to be compared, and `most`
    how many conflicts are told.
    """

    share: float = 0.25
    most: int = 20

    name: ClassVar[str] = "conflicts"
    needs: ClassVar[frozenset[Need]] = frozenset()

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """In the order of the passages. `start` and `end` are of what the response says of a conflict, None
        where it does not touch it. Raises `OverBudget`."""
        response, asked = (
            [place for place in places_of([text], inputs.tick) if not place.is_heading]
            for text in (inputs.response or "", inputs.question)
        )
        index = Index([source.text for source in inputs.sources], inputs.tick, attrgetter("stems"))
        some = [place for place in index.places if not place.is_heading]
        found: list[Finding] = []
        for sides in self._differences(inputs, index):
            inputs.tick()
            found.append(_finding(inputs, sides, touched(response, sides, asked)))
            if len(found) == self.most:
                break
        told = {finding.passages for finding in found if finding.start is not None}
        for (one, other), where in asked_for(inputs, asked, response, some):
            if len(found) >= self.most:
                break
            if names_one(inputs.question, inputs.sources[one[0].passage], inputs.sources[other[0].passage]):
                continue
            sides = (one, other) if one[0].passage < other[0].passage else (other, one)
            finding = _finding(inputs, sides, where)
            if finding.passages not in told:
                told.add(finding.passages)
                found.append(finding)
        return sorted(found, key=lambda finding: finding.passages)

    def _differences(self, inputs: CheckInput, index: Index) -> Iterator[Sides]:
        """Yield each pair of values once in two passages."""
        seen: set[tuple[int, int, str, str]] = set()
        pairs = index.aligned(self.share, inputs.tick)
        for one, other in _without_repeated(pairs):
            inputs.tick()
            first, second = inputs.sources[one.passage], inputs.sources[other.passage]
            if are_siblings(first, second) or names_one(inputs.question, first, second):
                continue
            spans = difference(
                one, other, strict=are_of_one_text(first, second), several=are_versions(first, second)
            )
            if spans is None:
                continue
            values = (one.text[slice(*spans.one)].casefold(), other.text[slice(*spans.other)].casefold())
            known = (one.passage, other.passage, *values)
            if known not in seen:
                seen.add(known)
                yield (one, spans.one), (other, spans.other)


def _without_repeated(pairs: list[tuple[Place, Place]]) -> Iterator[tuple[Place, Place]]:
    """Those of which neither sentence is in the other passage as it is."""
    same = {
        (side, other.passage)
        for one, two in pairs
        for side, other in ((one, two), (two, one))
        if one.text.casefold() == two.text.casefold()
    }
    for one, other in pairs:
        if (one, other.passage) not in same and (other, one.passage) not in same:
            yield one, other


def _finding(inputs: CheckInput, sides: Sides, where: Span | None) -> Finding:
    passages = (sides[0][0].passage, sides[1][0].passage)
    sources = [inputs.sources[number] for number in passages]
    latest = newer(*sources)
    documents = " and ".join(map(named, passages, sources))
    values = " against ".join(f'"{one_line(place.text[slice(*span)], 80)}"' for place, span in sides)
    words = f"Passages {documents} differ: {values}."
    if latest is not None:
        words += f" Passage {passages[latest] + 1} is the newer one."
    details: dict[str, Detail] = {
        "sides": [_side(place, span, source) for (place, span), source in zip(sides, sources, strict=True)],
        "newer": None if latest is None else passages[latest],
    }
    start, end = where or (None, None)
    return Finding(
        Conflicts.name, "conflict", words, start=start, end=end, passages=passages, details=details
    )


def _side(statement: Place, span: Span, source: Source) -> dict[str, Detail]:
    return {
        "passage": statement.passage,
        "text": statement.text,
        "value": statement.text[slice(*span)],
        "start": statement.start + span[0],
        "end": statement.start + span[1],
        "title": source.title,
        "version": source.version,
        "effective": source.effective,
    }


NEAR = 0.5
"""The part of the words that a response and a side of a conflict share, from which it speaks of it; half
is enough where it has the value of a side."""


def touched(response: Sequence[Place], sides: Sides, asked: Iterable[Place]) -> Span | None:
    """Characters of the response that a conflict is about: a value that is that of a side, or one like it in
    a sentence that says nearly the same; None where it says nothing of it. A short answer has the words of
    the question that is `asked`: "It is 16 weeks."."""
    question = {stem for one in asked for stem in _words(one)}
    found = [
        (nearness, (sentence.start + start, sentence.start + end))
        for statement, span in sides
        for sentence in response
        if statement.stems & (sentence.stems | question)
        for nearness, (start, end) in _touching(sentence, statement, span, question)
    ]
    return max(found, key=itemgetter(0))[1] if found else None


def _touching(
    sentence: Place, statement: Place, span: Span, question: set[str]
) -> Iterator[tuple[float, Span]]:
    """Yield what a sentence says of a side of a conflict, with how near it is to that."""
    value = next((one for one in statement.extents if _span(one) == span), None)
    nearness = _nearness(_words(sentence), statement)
    if value is not None:
        in_reply = max(nearness, _nearness(_words(sentence) | question, statement))
        for one in sentence.extents:
            if alike(one, value):
                same = not differ(one, value)
                if in_reply >= NEAR / 2 if same else nearness >= NEAR:
                    yield nearness + same, _span(one)
    elif nearness >= NEAR:
        wanted = {one.unit for one in statement.polarity if _span(one) == span}
        said = next((one for one in sentence.polarity if one.unit in wanted), None)
        yield (nearness, (0, len(sentence.text))) if said is None else (nearness + 1, _span(said))


def _nearness(first: set[str], statement: Place) -> float:
    """Return the part of the shorter one's words that the other has; words of values count in neither."""
    second = _words(statement)
    return len(first & second) / max(min(len(first), len(second)), 1)


def _words(statement: Place) -> set[str]:
    spans = [_span(value) for value in statement.own_values if value.kind != "polarity"]
    return {
        token.stem
        for token in statement.tokens
        if token.stem and not any(start <= token.start < end for start, end in spans)
    }


QUOTED = 200
"""Characters of a sentence that a note quotes."""
MOST = 8
"""Conflicts that a note names."""


def prompt_note(findings: Sequence[Finding], sources: Sequence[Source]) -> str:
    """Both sides of each conflict with version and date, and how to answer then; "" without a conflict."""
    conflicts = [one for one in findings if one.kind == "conflict"][:MOST]
    if not conflicts:
        return ""
    lines = [
        "The passages contradict each other. Where the answer depends on it, name both sides and sources:"
    ]
    for one in conflicts:
        details = cast(Mapping[str, Any], one.details)
        lines += [f"- {_side_words(side, sources, details['newer'])}" for side in details["sides"]]
    return "\n".join(lines)


def _side_words(side: Mapping[str, Any], sources: Sequence[Source], newer: int | None) -> str:
    passage = side["passage"]
    latest = ", the newer one" if passage == newer else ""
    return f'Passage {named(passage, sources[passage])}{latest}: "{one_line(side["text"], QUOTED)}"'
