"""`Citations`: the check of what a response cites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from lrp4rag.guard.checks.check import CheckInput, Detail, Finding, Need, OverBudget
from lrp4rag.guard.checks.citations.citation import Citation
from lrp4rag.guard.checks.citations.claims import claims, without
from lrp4rag.guard.checks.citations.find import find_citations
from lrp4rag.guard.checks.citations.library import Library
from lrp4rag.guard.checks.citations.support import LONGEST_CLAIM, Judgement, Supporter
from lrp4rag.util.text import clipped, one_line, visible

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Sentence, Verdict

Outcome = Literal["verified", "misattributed", "fabricated"]
_LENIENT, _STRICT = 0.75, 1.5


@dataclass(frozen=True, slots=True)
class Citations:
    """Whether each citation of the response was retrieved ("fabricated" where not) and says what it is cited
    for ("verified", or else "misattributed").

    `verified`: whether those that are right are findings too. `most`: of more different citations than that,
    nothing is said: it raises `OverBudget`.
    """

    verified: bool = True
    most: int = 500

    name: ClassVar[str] = "citations"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """In the order of the response. Raises `OverBudget`."""
        text = visible(inputs.response or "")
        library = Library(inputs.sources, inputs.tick, inputs.question)
        found = find_citations(text, library, inputs.tick)
        if not found:
            return []
        supporter = Supporter(library.texts, inputs.tick, library.known)
        seen: dict[tuple[object, ...], Judgement] = {}
        claimed: dict[tuple[int, int], str] = {}
        findings = []
        spans = claims(text, found)
        for number, (one, span) in enumerate(zip(found, spans, strict=True)):
            inputs.tick()
            if span not in claimed:
                claimed[span] = without(text, span, _overlapping(found, span, number))[:LONGEST_CLAIM]
            claim = claimed[span]
            beside = [other for other, where in _around(found, spans, number) if where == span]
            key = (claim, one.parts, tuple(other.parts for other in beside))
            if not one.missing and key not in seen:
                if len(seen) >= self.most:
                    raise OverBudget
                seen[key] = _judged(supporter, claim, one, beside, inputs.verdict, span)
            judged = seen.get(key, Judgement(False))
            kind: Outcome = (
                "fabricated" if one.missing else "verified" if judged.supported else "misattributed"
            )
            if kind != "verified" or self.verified:
                findings.append(_finding(text, one, kind, judged))
        return findings


def _around(
    found: Sequence[Citation], spans: Sequence[tuple[int, int]], number: int
) -> list[tuple[Citation, tuple[int, int]]]:
    """Citations near one, with what they are cited for."""
    near = range(max(number - 5, 0), min(number + 6, len(found)))
    return [(found[k], spans[k]) for k in near if k != number and not found[k].missing]


def _overlapping(found: Sequence[Citation], span: tuple[int, int], number: int) -> list[Citation]:
    first, last = number, number
    while first and found[first - 1].end > span[0]:
        first -= 1
    while last + 1 < len(found) and found[last + 1].start < span[1]:
        last += 1
    return list(found[first : last + 1])


def _judged(
    supporter: Supporter,
    claim: str,
    one: Citation,
    beside: Sequence[Citation],
    verdict: Verdict | None,
    span: tuple[int, int],
) -> Judgement:
    """By the passages, and by the evidence of a verdict where there is one. A document that has several
    passages, such as two editions of it, supports what one of them does, or all together do."""
    if one.format != "title" or len(one.passages) < 2:
        return _judged_whole(supporter, claim, one, beside, verdict, span)
    ways = [replace(one, parts=tuple(part for part in one.parts if part.passage == k)) for k in one.passages]
    alone = [_judged_whole(supporter, claim, way, beside, verdict, span) for way in ways]
    found = next((judged for judged in alone if judged.supported), None)
    return found or supporter.judge(claim, one.parts, _factor(verdict, one, span))


def _judged_whole(
    supporter: Supporter,
    claim: str,
    one: Citation,
    beside: Sequence[Citation],
    verdict: Verdict | None,
    span: tuple[int, int],
) -> Judgement:
    """Citations that stand together may support a claim together, each a part of it."""
    contradicted = _contradicted(verdict, one, span)
    if contradicted:
        return Judgement(False, (), contradicted)
    factor = _factor(verdict, one, span)
    alone = supporter.judge(claim, one.parts, factor)
    if not alone.supported and beside:
        together = [*one.parts, *(part for other in beside for part in other.parts)]
        if supporter.has_some(claim, one.parts) and supporter.judge(claim, together, factor).supported:
            return Judgement(True)
    if alone.supported and len(one.passages) > 1:
        idle = [
            k for k in one.passages if not supporter.has_some(claim, [p for p in one.parts if p.passage == k])
        ]
        if idle:
            return Judgement(False, tuple(k for k in one.passages if k not in idle))
    return alone


def _contradicted(verdict: Verdict | None, one: Citation, span: tuple[int, int]) -> str:
    """What a cited passage has in place of a value of the claim, by the verdict; what it is cited by
    is no such value."""
    for suspect in verdict.spans if verdict else ():
        for other in suspect.contradictions:
            if other.start < one.end and other.end > one.start:
                continue
            if other.start < span[1] and other.end > span[0] and other.passage in one.passages:
                return other.instead
    return ""


def _factor(verdict: Verdict | None, one: Citation, span: tuple[int, int]) -> float:
    """Return how much is asked for: less where the sentence rests on what is cited, more where it is
    suspect."""
    sentences: Sequence[Sentence] = verdict.sentences if verdict else ()
    for sentence in sentences:
        if sentence.start < span[1] and sentence.end > span[0]:
            if sentence.suspect:
                return _STRICT
            return _LENIENT if sentence.passage in one.passages else 1.0
    return 1.0


def _finding(text: str, one: Citation, kind: Outcome, judged: Judgement) -> Finding:
    cited = text[one.start : one.end]
    shown, missing = one_line(cited, 80), one_line(one.missing, 60)
    others = judged.elsewhere if kind == "misattributed" else ()
    details: dict[str, Detail] = {
        "cited": clipped(cited, 200),
        "format": one.format,
        "supported_by": list(
            others if kind == "misattributed" else one.passages if kind == "verified" else ()
        ),
    }
    words = {
        "verified": f"{shown} supports what it is cited for.",
        "misattributed": f"{shown} does not support what it is cited for{_why(one, judged)}.",
        "fabricated": f"{shown} was not retrieved: there is no {missing} among the passages.",
    }[kind]
    return Finding(
        Citations.name, kind, words, start=one.start, end=one.end, passages=one.passages, details=details
    )


def _why(one: Citation, judged: Judgement) -> str:
    if judged.elsewhere:
        listed = ", ".join(str(k + 1) for k in judged.elsewhere[:5])
        same = set(judged.elsewhere) <= set(one.passages)
        return f": another part of passage {listed} does" if same else f": passage {listed} does"
    return f': it has "{one_line(judged.contradicts, 60)}"' if judged.contradicts else ""
