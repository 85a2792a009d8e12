"""`Facts`: what an answer states, claim by claim, and which of it is grounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from lrp4rag.claims import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.words import content_words
from lrp4rag.guard.checks.check import CheckInput, Finding, Need
from lrp4rag.guard.checks.facts.find import Fact, facts_of
from lrp4rag.guard.checks.facts.scoring import Score, contradictions_of, score, sentence_of, suspect_spans
from lrp4rag.util.text import encodable, one_line

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict

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
        found = []
        for fact in facts_of(inputs.response, inputs.tick):
            inputs.tick()
            found.append(_finding(fact, score(fact, verdict), verdict, passages))
        return found


def fact_score(findings: Iterable[Finding]) -> float | None:
    """Return the share of judged facts that are grounded; None where none was judged."""
    judged = [one.kind == "grounded" for one in findings if one.kind in ("grounded", "ungrounded")]
    return sum(judged) / len(judged) if judged else None


class _Passages:
    """Which passage a fact rests on, by words and values where the verdict does not tell."""

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
        told = [one.passage for one in contradictions]
        told += [span.passage for span in spans if span.passage is not None and not span.contradictions]
        if sentence is not None and sentence.passage is not None:
            told.append(sentence.passage)
        if told:
            return told[0]
        response = self._inputs.response or ""
        text = encodable(" ".join(response[start:end] for start, end in fact.stretches))
        resting = self._index.resting(content_words(text), find_values(text))
        return self._index.places[resting[0]].passage if resting else None


def _finding(fact: Fact, found: Score, verdict: Verdict, passages: _Passages) -> Finding:
    kind = {True: "grounded", False: "ungrounded", None: "unjudged"}[found.grounded]
    spans = suspect_spans(fact, verdict)
    contradictions = contradictions_of(fact, spans)
    passage = passages.of(fact, sentence_of(fact.start, fact.end, verdict), spans, contradictions)
    return Finding(
        "facts",
        kind,
        _words(fact, found, contradictions, passage),
        start=fact.start,
        end=fact.end,
        passages=() if passage is None else (passage,),
        details={"probability": found.probability, "sentence": fact.sentence},
    )


def _words(fact: Fact, found: Score, contradictions: Sequence[Contradiction], passage: int | None) -> str:
    quoted = f'"{one_line(fact.text, QUOTED)}"'
    where = "the passages" if passage is None else f"passage {passage + 1}"
    if found.grounded is None:
        return f"Whether {quoted} is grounded in {where} was not judged."
    if found.grounded:
        return f"{quoted} is grounded in {where}."
    for one in contradictions:
        return (
            f"{quoted} is not grounded: passage {one.passage + 1} has "
            f'"{one_line(one.instead, QUOTED)}" in place of "{one_line(one.text, QUOTED)}".'
        )
    return f"{quoted} is not grounded in the passages."


def _in_order(verdict: Verdict) -> Verdict:
    return replace(
        verdict,
        spans=tuple(sorted(verdict.spans, key=lambda one: one.start)),
        sentences=tuple(sorted(verdict.sentences, key=lambda one: one.start)),
    )
