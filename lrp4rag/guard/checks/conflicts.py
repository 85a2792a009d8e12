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
"""The fewest words of the question's topic that a sentence which the answer rests on has."""
TOPIC_SHARE = 0.5
"""The least share of these words that it has."""
_FREE = re.compile(r"\b(?:free(?: of charge)?|no (?:charge|fee)|at no cost)\b(?!-)", re.IGNORECASE)

Sides = tuple[tuple[Place, Span], tuple[Place, Span]]
"""Two sentences, and the characters in which they differ."""


def answer_conflicts(
    inputs: CheckInput, question: Sequence[Place], response: Sequence[Place], passages: Sequence[Place]
) -> Iterator[tuple[Sides, Span]]:
    """Yield what another passage has in the place of a value of the answer, or denies of it, with the
    characters of the answer that this is about; the side that the answer rests on comes first."""
    sources = inputs.sources
    stems = (stem for place in question for stem in place.stems if not stem.startswith("#"))
    topic = beginnings(stems) - MEASURES
    least = max(LEAST, TOPIC_SHARE * len(topic))
    bases = [(place, words) for place in passages if len(words := topic & beginnings(place.stems)) >= least]
    contexts = [(place, topic & _context(place, sources)) for place in passages] if bases and response else []
    for basis, words in bases:
        rivals = [
            (rival, context)
            for rival, context in contexts
            if rival.passage != basis.passage
            and words <= context
            and not are_siblings(sources[basis.passage], sources[rival.passage])
        ]
        for sentence in response:
            for rival, context in rivals:
                inputs.tick()
                editions = are_versions(sources[basis.passage], sources[rival.passage])
                for spans, claim, strict in _differences(sentence, basis, rival, passages, editions=editions):
                    sides = Side(basis, spans.one), Side(rival, spans.other)
                    if same_in_other_words(*sides, words | context, strict=strict):
                        start = sentence.start
                        yield ((basis, spans.one), (rival, spans.other)), (start + claim[0], start + claim[1])
                        break


def _differences(
    sentence: Place, basis: Place, rival: Place, passages: Sequence[Place], *, editions: bool
) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield where a sentence of the answer says what `basis` does, and `rival` another thing; the characters
    of the sentence; and whether both must be of the same in each word."""
    for value in sentence.extents:
        support = next((extent for extent in basis.extents if agrees(value, extent)), None)
        if support is None or value.kind not in NUMERIC or _has(passages, rival.passage, value):
            continue
        # Which of several values answers the question is not known, but for editions of one text.
        if not editions and any(
            sum(alike(support, extent) for extent in place.extents) > 1 for place in (basis, rival)
        ):
            continue
        for counter in rival.extents:
            differs = alike(support, counter) and differ(support, counter)
            if differs and not _has(passages, basis.passage, counter):
                yield Difference(_span(support), _span(counter)), _span(value), False
    yield from _free(sentence, basis, rival)
    yield from _denied(sentence, basis, rival)


def _has(passages: Sequence[Place], number: int, value: Extent) -> bool:
    """Say whether the passage with a number has a value."""
    extents = (extent for place in passages if place.passage == number for extent in place.extents)
    return any(agrees(value, extent) for extent in extents)


def _span(value: Value | Extent) -> Span:
    return value.start, value.end


def _free(sentence: Place, basis: Place, rival: Place) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield what is free of charge in one passage and has a price in the other."""
    claim, support, counter = (_FREE.search(place.text) for place in (sentence, basis, rival))
    if claim and support and not counter and (price := _price(rival)):
        yield Difference(support.span(), _span(price)), claim.span(), False
    if counter and not support and (price := _price(basis)):
        for value in sentence.extents:
            if agrees(value, price):
                yield Difference(_span(price), counter.span()), _span(value), False


def _price(place: Place) -> Extent | None:
    return next((extent for extent in place.extents if extent.first.unit in CURRENCIES), None)


def _denied(sentence: Place, basis: Place, rival: Place) -> Iterator[tuple[Difference, Span, bool]]:
    """Yield a word with an opposite, or a verb, which the other passage denies of the same."""
    basis_words, rival_words = ({word.key: word for word in place.polarity} for place in (basis, rival))
    is_plain = not any(word.key[1] for word in basis.polarity)
    for claim in sentence.polarity:
        plain = claim.key not in basis_words and not claim.key[1] and is_plain
        if (claim.key not in basis_words and not plain) or claim.key in rival_words:
            continue
        for denial in rival.polarity:
            verb = _verb_behind(denial, rival)
            if (
                opposed(claim, denial)
                and denial.key not in basis_words
                and (not plain or (denial.key[1] and verb in sentence.stems))
            ):
                span = (0, len(basis.text)) if plain else _span(basis_words[claim.key])
                yield Difference(span, with_verb(rival, _span(denial))), _span(claim), True
    if is_plain and not any(word.key[1] for word in sentence.polarity):
        for denial in rival.polarity:
            verb = _verb_behind(denial, rival) if denial.key == ("not", 1) else ""
            verbs = [
                next((token for token in place.tokens if token.stem == verb), None)
                for place in (basis, sentence)
            ]
            if verb and verbs[0] and verbs[1]:
                spans = Difference((verbs[0].start, verbs[0].end), with_verb(rival, _span(denial)))
                yield spans, (verbs[1].start, verbs[1].end), True


def _verb_behind(denial: Value, place: Place) -> str:
    """Return the stem of the word that a "not" denies: the next word with content, so not "be"."""
    return next((token.stem for token in place.tokens if token.start >= denial.end and token.stem), "")


def _context(place: Place, sources: Sequence[Source]) -> frozenset[str]:
    """Return beginnings of the words of a sentence, of its heading and title, and of the sentence before."""
    title = _title_words(sources[place.passage])
    return beginnings([*place.stems, *place.lead_stems, *place.before_stems, *title])


_VERSION = re.compile(r"v?\d+")


def are_versions(first: Source, second: Source) -> bool:
    """Say whether two passages are of two versions of one document."""
    return _same_document(first, second) and not _same_version(first, second)


def are_of_one_text(first: Source, second: Source) -> bool:
    """Say whether two passages are known to be of the same version of one document, which rarely contradicts
    itself."""
    return _same_document(first, second) and _same_version(first, second) and first.version is not None


def are_siblings(first: Source, second: Source) -> bool:
    """Say whether the titles are of two documents of one kind: "Drill X2 Manual" and "Drill X5 Manual", but
    not "Leave Policy v2" and "Leave Policy v3"."""
    titles = [set(_title_words(source)) for source in (first, second)]
    distinct = (titles[0] - titles[1], titles[1] - titles[0])
    differ = all(any(not _VERSION.fullmatch(word) for word in words) for words in distinct)
    return bool(titles[0] & titles[1]) and differ


def tells_apart(question: str, first: Source, second: Source) -> bool:
    """Say whether the question names something that only one passage names, where the other names something
    else: they are about different things, and do not contradict each other."""
    texts = [f"{source.title or ''} {source.text}" for source in (first, second)]
    vocabularies = [_folded(text) for text in texts]
    for name in find_names(question, Surroundings(" ".join(texts))):
        words = _folded(name.text)
        if (words <= vocabularies[0]) != (words <= vocabularies[1]):
            without = int(words <= vocabularies[0])
            rivals = (_folded(rival.text) for rival in find_names(texts[without]))
            return any(not rival <= vocabularies[1 - without] for rival in rivals)
    return False


def newer(first: Source, second: Source) -> int | None:
    """Return 0 for the first, 1 for the second: the one that is effective later; without dates, the one with
    the higher version of the same document. None where neither is known to be newer."""
    passages = [read_passage(number, source, UTC) for number, source in enumerate((first, second))]
    starts = [passage.validity.period.start for passage in passages]
    if starts[0] and starts[1] and starts[0] != starts[1]:
        return int(starts[1] > starts[0])
    same = _same_document(first, second)
    return next((k for k in (0, 1) if same and passages[k].replaces(passages[1 - k])), None)


def label(number: int, source: Source) -> str:
    """Return '2 (Leave Policy 3.1, from 2024-01-01)'; the number counts from 0."""
    name = " ".join(one_line(text, 60) for text in (source.title, source.version) if text)
    start = f"from {one_line(source.effective, 30)}" if source.effective else ""
    about = ", ".join(text for text in (name, start) if text)
    return f"{number + 1} ({about})" if about else str(number + 1)


def _same_document(first: Source, second: Source) -> bool:
    titles = [
        [word for word in _title_words(source) if not _VERSION.fullmatch(word)] for source in (first, second)
    ]
    return bool(titles[0]) and titles[0] == titles[1]


def _same_version(first: Source, second: Source) -> bool:
    first_version, second_version = (
        (source.title, source.version, source.effective) for source in (first, second)
    )
    return first_version == second_version


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
        """Return the conflicts in the order of the passages. `start` and `end` are of what the response says
        of a conflict, None where it does not touch it. Raises `OverBudget`."""
        response, question = (
            [place for place in places_of([text], inputs.tick) if not place.is_heading]
            for text in (inputs.response or "", inputs.question)
        )
        index = Index([source.text for source in inputs.sources], inputs.tick, attrgetter("stems"))
        sentences = [place for place in index.places if not place.is_heading]
        findings: list[Finding] = []
        for sides in self._differences(inputs, index):
            inputs.tick()
            findings.append(_finding(inputs, sides, touched(response, sides, question)))
            if len(findings) == self.most:
                break
        pairs = {finding.passages for finding in findings if finding.start is not None}
        for (basis, rival), span in answer_conflicts(inputs, question, response, sentences):
            if len(findings) >= self.most:
                break
            sources = (inputs.sources[basis[0].passage], inputs.sources[rival[0].passage])
            if tells_apart(inputs.question, *sources):
                continue
            sides = (basis, rival) if basis[0].passage < rival[0].passage else (rival, basis)
            finding = _finding(inputs, sides, span)
            if finding.passages not in pairs:
                pairs.add(finding.passages)
                findings.append(finding)
        return sorted(findings, key=lambda finding: finding.passages)

    def _differences(self, inputs: CheckInput, index: Index) -> Iterator[Sides]:
        """Yield each pair of values once in two passages."""
        keys: set[tuple[int, int, str, str]] = set()
        pairs = index.aligned(self.share, inputs.tick)
        for first, second in _without_repeated(pairs):
            inputs.tick()
            sources = inputs.sources[first.passage], inputs.sources[second.passage]
            if are_siblings(*sources) or tells_apart(inputs.question, *sources):
                continue
            strict, several = are_of_one_text(*sources), are_versions(*sources)
            spans = difference(first, second, strict=strict, several=several)
            if spans is None:
                continue
            values = (first.text[slice(*spans.one)].casefold(), second.text[slice(*spans.other)].casefold())
            key = (first.passage, second.passage, *values)
            if key not in keys:
                keys.add(key)
                yield (first, spans.one), (second, spans.other)


def _without_repeated(pairs: list[tuple[Place, Place]]) -> Iterator[tuple[Place, Place]]:
    """Yield the pairs of which neither sentence is in the other passage as it is."""
    repeated = {
        (sentence, counterpart.passage)
        for first, second in pairs
        for sentence, counterpart in ((first, second), (second, first))
        if first.text.casefold() == second.text.casefold()
    }
    for first, second in pairs:
        if (first, second.passage) not in repeated and (second, first.passage) not in repeated:
            yield first, second


def _finding(inputs: CheckInput, sides: Sides, span: Span | None) -> Finding:
    passages = (sides[0][0].passage, sides[1][0].passage)
    sources = [inputs.sources[number] for number in passages]
    latest = newer(*sources)
    documents = " and ".join(map(label, passages, sources))
    values = " against ".join(f'"{one_line(place.text[slice(*value)], 80)}"' for place, value in sides)
    words = f"Passages {documents} differ: {values}."
    if latest is not None:
        words += f" Passage {passages[latest] + 1} is the newer one."
    details: dict[str, Detail] = {
        "sides": [_side(*side, source) for side, source in zip(sides, sources, strict=True)],
        "newer": None if latest is None else passages[latest],
    }
    start, end = span or (None, None)
    return Finding(
        Conflicts.name, "conflict", words, start=start, end=end, passages=passages, details=details
    )


def _side(statement: Place, span: Span, source: Source) -> dict[str, Detail]:
    """Return a side of a conflict as JSON values."""
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
"""The share of words that a response and a side of a conflict have in common, from which the response speaks
of it; half is enough where the response has the value of a side."""


def touched(response: Sequence[Place], sides: Sides, question: Iterable[Place]) -> Span | None:
    """Return the characters of the response that a conflict is about: the value of a side, or one like it in
    a sentence that says nearly the same; None where it says nothing of the conflict. A short answer, such as
    "It is 16 weeks.", has the words of the question too."""
    question_words = {stem for sentence in question for stem in _words(sentence)}
    matches = [
        (nearness, (sentence.start + start, sentence.start + end))
        for statement, span in sides
        for sentence in response
        if statement.stems & (sentence.stems | question_words)
        for nearness, (start, end) in _touching(sentence, statement, span, question_words)
    ]
    return max(matches, key=itemgetter(0))[1] if matches else None


def _touching(
    sentence: Place, statement: Place, span: Span, question: set[str]
) -> Iterator[tuple[float, Span]]:
    """Yield what a sentence says of a side of a conflict, with how near it is to that."""
    value = next((extent for extent in statement.extents if _span(extent) == span), None)
    nearness = _nearness(_words(sentence), statement)
    if value is not None:
        in_reply = max(nearness, _nearness(_words(sentence) | question, statement))
        for extent in sentence.extents:
            if alike(extent, value):
                same = not differ(extent, value)
                if in_reply >= NEAR / 2 if same else nearness >= NEAR:
                    yield nearness + same, _span(extent)
    elif nearness >= NEAR:
        units = {word.unit for word in statement.polarity if _span(word) == span}
        match = next((word for word in sentence.polarity if word.unit in units), None)
        yield (nearness, (0, len(sentence.text))) if match is None else (nearness + 1, _span(match))


def _nearness(words: set[str], statement: Place) -> float:
    """Return the share of the words of the shorter that the longer has too; words of values do not count."""
    statement_words = _words(statement)
    return len(words & statement_words) / max(min(len(words), len(statement_words)), 1)


def _words(statement: Place) -> set[str]:
    """Return the stems of a sentence that are no part of a value."""
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
    """Return both sides of each conflict with version and date, and how to answer then; "" without one."""
    conflicts = [finding for finding in findings if finding.kind == "conflict"][:MOST]
    if not conflicts:
        return ""
    lines = [
        "The passages contradict each other. Where the answer depends on it, name both sides and sources:"
    ]
    for conflict in conflicts:
        details = cast(Mapping[str, Any], conflict.details)
        lines += [f"- {_side_words(side, sources, details['newer'])}" for side in details["sides"]]
    return "\n".join(lines)


def _side_words(side: Mapping[str, Any], sources: Sequence[Source], newer: int | None) -> str:
    passage = side["passage"]
    latest = ", the newer one" if passage == newer else ""
    return f'Passage {label(passage, sources[passage])}{latest}: "{one_line(side["text"], QUOTED)}"'
