"""`Facts`: the claims of an answer (`facts_of`), and which of them are grounded (`score`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from lrp4rag.claims import Value, find_values
from lrp4rag.claims.clauses import Clause, Span, clauses
from lrp4rag.claims.index import Index
from lrp4rag.claims.stating import is_heading, states_nothing, without_marker
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import NUMERIC
from lrp4rag.claims.words import content_words
from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import blanked, encodable, one_line

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict


_NUMBERED = re.compile(
    r"(?:passage|section|article|chapter|step|page|figure|table|form|paragraph|no\.|number|version) ?\Z",
    re.IGNORECASE,
)
_CITED = re.compile(r"\[(?=[^\[\]\n]{0,80}\d)[^\[\]\n]{1,80}\]")
"""A citation in brackets: [2], [DEP-4], [Handbook, 4.2]."""
_RULER = re.compile(r"\|?[\s|:-]*-[\s|:-]*")


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim of a response, in its sentence number `sentence` (from 0, of `sentences_in`).

    Characters `start` to `end` (exclusive) tell it from the other claims, and read `text`. `stretches` are
    these characters, and before them the subject where it stands apart.
    """

    sentence: int
    start: int
    end: int
    text: str
    stretches: tuple[Span, ...]


def facts_of(response: str, tick: Callable[[], None] = lambda: None) -> list[Fact]:
    """Return the claims of a response, in its order; a sentence that states nothing has none. `tick` is
    called in every loop, and may raise."""
    text = encodable(response)
    sentences = sentences_in(text)
    text = blanked(text, _CITED)  # a citation states nothing
    around, facts = Surroundings(text), list[Fact]()
    for number, (start, end) in enumerate(sentences):
        tick()
        begin, stop = sentences[number + 1] if number + 1 < len(sentences) else (end, end)
        line = "\n" in text[end:begin]
        if line and _is_ruler(text[begin:stop]):
            continue
        sentence, alone = text[start:end], len(sentences) == 1
        claims = _claims(sentence, find_values(sentence, around), followed=line, alone=alone, tick=tick)
        facts += [_fact(response, number, start, claim) for claim in claims]
    return facts


def stated(response: str, tick: Callable[[], None] = lambda: None) -> list[Span]:
    """Return (start, end) of the sentences that state something: those that have a fact."""
    sentences = sentences_in(encodable(response))
    return [sentences[number] for number in sorted({fact.sentence for fact in facts_of(response, tick)})]


def _fact(response: str, number: int, offset: int, claim: Clause) -> Fact:
    start, end = offset + claim.start, offset + claim.end
    if response[start:end].count("(") > response[start:end].count(")") and response[end : end + 1] == ")":
        end += 1
    head = [] if claim.head is None else [(offset + claim.head[0], offset + claim.head[1])]
    return Fact(number, start, end, response[start:end], (*head, (start, end)))


def _claims(
    text: str, values: Sequence[Value], *, followed: bool, alone: bool, tick: Callable[[], None]
) -> Iterator[Clause]:
    begin = 0 if alone else without_marker(text)
    body, values = text[begin:], _inside(values, begin, len(text))
    if states_nothing(body, values) or is_heading(text, values, followed=followed and not begin):
        return
    absent, last = False, 0
    for clause in _cells(body) if body.startswith("|") else clauses(body, _amounts(body, values), tick):
        inside = _inside(values, clause.start, clause.end)
        # An absence lasts to where the sentence turns to something else.
        absent = absent and "but" not in body[last : clause.start].lower().split()
        absent = absent or any(value.kind == "absence" for value in inside)
        last = clause.end
        if not absent and not states_nothing(body[clause.start : clause.end], inside):
            head = None if clause.head is None else (clause.head[0] + begin, clause.head[1] + begin)
            yield Clause(clause.start + begin, clause.end + begin, head)


def _inside(values: Sequence[Value], start: int, end: int) -> list[Value]:
    return [value.shifted(-start) for value in values if start <= value.start and value.end <= end]


def _amounts(text: str, values: Sequence[Value]) -> list[Value]:
    """Return the values that say how much or when: not the number of a section."""
    return [
        value
        for value in values
        if value.kind in NUMERIC and not _NUMBERED.search(text[max(value.start - 10, 0) : value.start])
    ]


def _cells(text: str) -> Iterator[Clause]:
    """Yield the cells of a row of a table, with the first as their head."""
    cells = [match.span() for match in re.finditer(r"[^\s|](?:[^|\n]*[^\s|])?", text)]
    if len(cells) == 1:
        yield Clause(*cells[0])
    for cell in cells[1:]:
        yield Clause(*cell, head=cells[0])


def _is_ruler(text: str) -> bool:
    """Say whether it is the line under the head of a table."""
    return "|" in text and _RULER.fullmatch(text) is not None


class Score(NamedTuple):
    """The `probability` that a fact is ungrounded, None where the verdict has none of it, and whether it is
    `grounded`, None where that was not judged."""

    probability: float | None
    grounded: bool | None


def score(fact: Fact, verdict: Verdict) -> Score:
    """Score a fact by a verdict, whose spans and sentences are in the order of the response.

    A fact is ungrounded where a suspect span has a word or a value of it, with that span's probability; under
    the threshold, with that of its suspect sentence, by which alone a lost "not" is found. So it is where its
    sentence is suspect and no span tells where, with the sentence's. A verdict that abstained, or that has
    evidence only, judges nothing.
    """
    if verdict.abstained or (verdict.probability is None and not verdict.spans):
        return Score(None, grounded=None)
    sentence = sentence_of(fact.start, fact.end, verdict)
    whole = None if sentence is None or not sentence.suspect else sentence.probability
    if spans := suspect_spans(fact, verdict):
        probabilities = [span.probability for span in spans if span.probability is not None]
        highest = max(probabilities, default=None)
        by_sentence = whole is not None and highest is not None and highest < (verdict.threshold or 0.0)
        return Score(whole if by_sentence else highest, grounded=False)
    located = sentence is not None and any(_spans(verdict, (sentence.start, sentence.end)))
    probability = None if sentence is None or located else sentence.probability
    return Score(probability, grounded=sentence is None or located or not sentence.suspect)


def suspect_spans(fact: Fact, verdict: Verdict) -> list[SuspectSpan]:
    """Return the suspect spans that have a word or a value of the fact."""
    return [span for stretch in fact.stretches for span in _spans(verdict, stretch)]


def contradictions_of(fact: Fact, spans: Sequence[SuspectSpan]) -> list[Contradiction]:
    """Return the contradictions in a fact, of its suspect `spans`, which may reach over several facts."""
    return [
        contradiction
        for span in spans
        for contradiction in span.contradictions
        if any(contradiction.start < end and start < contradiction.end for start, end in fact.stretches)
    ]


def sentence_of(start: int, end: int, verdict: Verdict) -> Sentence | None:
    """Return the verdict's sentence that characters of the response begin in; None where there is none."""
    number = bisect_right(verdict.sentences, start, key=lambda sentence: sentence.end)
    sentence = verdict.sentences[number] if number < len(verdict.sentences) else None
    return sentence if sentence is not None and sentence.start < end else None


def _spans(verdict: Verdict, stretch: Span) -> Iterator[SuspectSpan]:
    """Yield the suspect spans that share a value or a word with content with a stretch."""
    spans: Sequence[SuspectSpan] = verdict.spans
    start, end = stretch
    for number in range(bisect_right(spans, start, key=lambda span: span.end), len(spans)):
        span = spans[number]
        if span.start >= end:
            return
        shared = encodable(span.text[max(start - span.start, 0) : end - span.start])
        if content_words(shared) or find_values(shared):
            yield span


QUOTED = 80
"""Characters of an answer or a passage that words quote, at most."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One finding for each fact: "grounded", "ungrounded", or "unjudged" where the verdict abstained."""

    name: ClassVar[str] = "facts"
    needs: ClassVar[frozenset[Need]] = frozenset({"response", "verdict"})

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        if inputs.response is None or inputs.verdict is None:
            return []
        verdict = _in_order(inputs.verdict)
        passages = _Passages(inputs)
        findings = []
        for fact in facts_of(inputs.response, inputs.tick):
            inputs.tick()
            findings.append(_finding(fact, score(fact, verdict), verdict, passages))
        return findings


def fact_score(findings: Iterable[Finding]) -> float | None:
    """Return the share of judged facts that are grounded; None where none was judged."""
    kinds = (finding.kind for finding in findings)
    judged = [kind == "grounded" for kind in kinds if kind in ("grounded", "ungrounded")]
    return sum(judged) / len(judged) if judged else None


class _Passages:
    """Finds the passage that a fact rests on, by words and values where the verdict does not tell."""

    def __init__(self, inputs: CheckInput) -> None:
        self._inputs = inputs

    @cached_property
    def _index(self) -> Index:
        return Index([source.text for source in self._inputs.sources], self._inputs.tick)

    def of(
        self,
        fact: Fact,
        sentence: Sentence | None,
        spans: Sequence[SuspectSpan],
        contradictions: Sequence[Contradiction],
    ) -> int | None:
        passages = [contradiction.passage for contradiction in contradictions]
        passages += [span.passage for span in spans if span.passage is not None and not span.contradictions]
        if sentence is not None and sentence.passage is not None:
            passages.append(sentence.passage)
        if passages:
            return passages[0]
        response = self._inputs.response or ""
        text = encodable(" ".join(response[start:end] for start, end in fact.stretches))
        resting = self._index.resting(content_words(text), find_values(text))
        return self._index.places[resting[0]].passage if resting else None


def _finding(fact: Fact, result: Score, verdict: Verdict, passages: _Passages) -> Finding:
    kind = {True: "grounded", False: "ungrounded", None: "unjudged"}[result.grounded]
    spans = suspect_spans(fact, verdict)
    contradictions = contradictions_of(fact, spans)
    passage = passages.of(fact, sentence_of(fact.start, fact.end, verdict), spans, contradictions)
    return Finding(
        "facts",
        kind,
        _words(fact, result, contradictions, passage),
        start=fact.start,
        end=fact.end,
        passages=() if passage is None else (passage,),
        details={"probability": result.probability, "sentence": fact.sentence},
    )


def _words(fact: Fact, result: Score, contradictions: Sequence[Contradiction], passage: int | None) -> str:
    quoted = f'"{one_line(fact.text, QUOTED)}"'
    where = "the passages" if passage is None else f"passage {passage + 1}"
    if result.grounded is None:
        return f"Whether {quoted} is grounded in {where} was not judged."
    if result.grounded:
        return f"{quoted} is grounded in {where}."
    if contradictions:
        first = contradictions[0]
        return (
            f"{quoted} is not grounded: passage {first.passage + 1} has "
            f'"{one_line(first.instead, QUOTED)}" in place of "{one_line(first.text, QUOTED)}".'
        )
    return f"{quoted} is not grounded in the passages."


def _in_order(verdict: Verdict) -> Verdict:
    return replace(
        verdict,
        spans=tuple(sorted(verdict.spans, key=lambda span: span.start)),
        sentences=tuple(sorted(verdict.sentences, key=lambda sentence: sentence.start)),
    )
