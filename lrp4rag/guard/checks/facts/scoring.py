"""`score` a fact by a verdict: how likely it is ungrounded, and whether it is grounded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lrp4rag.claims import find_values
from lrp4rag.claims.clauses import Span
from lrp4rag.claims.words import content_words
from lrp4rag.guard.checks.facts.find import Fact
from lrp4rag.util.text import encodable

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict


class Score(NamedTuple):
    """The `probability` that a fact is ungrounded, None where the verdict has none of it, and whether it is
    `grounded`, None where that was not judged."""

    probability: float | None
    grounded: bool | None


def score(fact: Fact, verdict: Verdict) -> Score:
    """A fact is ungrounded where a suspect span has a word or a value of it, with that span's probability; or
    where its sentence is suspect and no span tells where, with the sentence's. Spans and sentences of the
    verdict are in the order of the response. Nothing is judged by a verdict that abstained, or that has
    evidence only.
    """
    if verdict.abstained or (verdict.probability is None and not verdict.spans):
        return Score(None, grounded=None)
    if reached := suspect_spans(fact, verdict):
        known = [span.probability for span in reached if span.probability is not None]
        return Score(max(known, default=None), grounded=False)
    sentence = sentence_of(fact.start, fact.end, verdict)
    located = sentence is not None and any(_spans(verdict, (sentence.start, sentence.end)))
    probability = None if sentence is None or located else sentence.probability
    return Score(probability, grounded=sentence is None or located or not sentence.suspect)


def suspect_spans(fact: Fact, verdict: Verdict) -> list[SuspectSpan]:
    """Those that have a word or a value of the fact."""
    return [span for stretch in fact.stretches for span in _spans(verdict, stretch)]


def contradictions_of(fact: Fact, spans: Sequence[SuspectSpan]) -> list[Contradiction]:
    """Of its suspect `spans`, those that stand in the fact itself: a span may reach over several facts."""
    return [
        one
        for span in spans
        for one in span.contradictions
        if any(one.start < end and start < one.end for start, end in fact.stretches)
    ]


def sentence_of(start: int, end: int, verdict: Verdict) -> Sentence | None:
    """Return the verdict's sentence that characters of the response begin in; None where there is none."""
    number = bisect_right(verdict.sentences, start, key=lambda sentence: sentence.end)
    sentence = verdict.sentences[number] if number < len(verdict.sentences) else None
    return sentence if sentence is not None and sentence.start < end else None


def _spans(verdict: Verdict, stretch: Span) -> Iterator[SuspectSpan]:
    """Suspect spans that share with the stretch what says something; an "of" does not."""
    spans: Sequence[SuspectSpan] = verdict.spans
    start, end = stretch
    for number in range(bisect_right(spans, start, key=lambda one: one.end), len(spans)):
        span = spans[number]
        if span.start >= end:
            return
        shared = encodable(span.text[max(start - span.start, 0) : end - span.start])
        if content_words(shared) or find_values(shared):
            yield span
