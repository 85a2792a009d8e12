"""`Citations`: whether passages say what they are cited for, by typed values and by words."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Literal

from lrp4rag.claims import Value, agree, comparable, find_values
from lrp4rag.claims.clauses import Span
from lrp4rag.claims.index import NEIGHBOUR, Index
from lrp4rag.claims.polarity import opposed_words
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.written import number_of
from lrp4rag.guard.checks.check import CheckInput, Detail, Finding, Need, OverBudget
from lrp4rag.guard.checks.citations.citation import Citation, Part
from lrp4rag.guard.checks.citations.claims import claim_words, claims, without
from lrp4rag.guard.checks.citations.find import find_citations
from lrp4rag.guard.checks.citations.library import Library
from lrp4rag.guard.checks.citations.marks import ORDINALS
from lrp4rag.guard.checks.facts import sentence_of
from lrp4rag.util.text import clipped, one_line, visible

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Verdict

LONGEST_CLAIM = 2000
BESIDE = 5
"""Citations before and after a citation that may be cited for the same claim."""
_WITH_VALUES = 0.2
_PLAIN = 0.25
_RIVAL = 0.25
"""The share of a claim's words by which another value, or another place, must lead to outweigh."""
_NTH: dict[float | None, str] = dict(enumerate(ORDINALS, 1))
_SPREAD = 0.75
"""Weight of the words of a claim that stand in a passage, but apart."""


@dataclass(frozen=True, slots=True)
class Support:
    """How far some places support a claim: the `share` of its words that they have, by rarity (0 to 1), of
    which `least` is enough; whether they have all its `values`; and their value that `contradicts` it, or
    ""."""

    share: float
    least: float
    values: bool
    contradicts: str

    def enough(self, factor: float = 1.0) -> bool:
        return self.values and not self.contradicts and self.share >= self.least * factor


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a citation supports its claim; if not, the passages that do, and the value that contradicts."""

    supported: bool
    elsewhere: tuple[int, ...] = ()
    contradicts: str = ""


class Supporter:
    """Looks claims up in passages, and in their versions and dates, which a claim may name."""

    def __init__(self, library: Library) -> None:
        self._metadata = [(text, find_values(text)) for text in library.metadata]
        self._tick = library.tick
        self._index = Index(library.texts)
        self._context = Surroundings(" ".join(library.texts))
        self._numbers: dict[int, list[int]] = {}
        """The numbers of the places of a passage."""
        for number, place in enumerate(self._index.places):
            self._numbers.setdefault(place.passage, []).append(number)

    def judge(self, claim: str, parts: Sequence[Part], factor: float = 1.0) -> Judgement:
        """Judge whether the cited parts support a claim. `factor` scales how much of its words they need:
        below 1 where other evidence speaks for the citation."""
        words = claim_words(claim)
        values = find_values(claim, self._context)
        if not words or any(value.kind == "absence" for value in values):
            return Judgement(True)
        cited = self._places(parts)
        support = self._support(words, values, cited)
        inside = set(cited)
        rivals: dict[int, Support] = {}
        for passage, numbers in self._numbers.items():
            rest = [number for number in numbers if number not in inside]
            if rest and (rival := self._support(words, values, rest)).enough():
                rivals[passage] = rival
        best = max((rival.share for rival in rivals.values()), default=0.0)
        if support.enough(factor) and best < support.share + _RIVAL / max(factor, 0.5):
            return Judgement(True)
        elsewhere = (
            passage for passage, rival in rivals.items() if rival.share > support.share or not support.values
        )
        return Judgement(False, tuple(elsewhere), support.contradicts)

    def has_some(self, claim: str, parts: Sequence[Part]) -> bool:
        """Say whether parts say at least something of a claim."""
        cited = self._places(parts)
        share = self._support(claim_words(claim), [], cited).share
        if not _WITH_VALUES / 2 <= share < _WITH_VALUES:
            return share >= _WITH_VALUES
        values = find_values(claim, self._context)
        return any(self._has(value, cited) for value in values if _is_hard(value))

    def _places(self, parts: Sequence[Part]) -> list[int]:
        """Return the numbers of the places that share a character with a part."""
        places = self._index.places
        return sorted(
            {
                number
                for part in parts
                for number in self._numbers.get(part.passage, ())
                if places[number].start < part.end and places[number].end > part.start
            }
        )

    def _support(self, words: frozenset[str], values: Sequence[Value], places: Sequence[int]) -> Support:
        self._tick()
        weights = self._index.weights(words)
        total = math.fsum(weights.values()) or 1.0
        by_place = {number: self._index.places[number].words for number in places}
        union = frozenset().union(*by_place.values())
        shares = {}
        for number in places:
            beside = by_place.get(number - 1, frozenset()) | by_place.get(number + 1, frozenset())
            shares[number] = math.fsum(
                weight * (1.0 if word in by_place[number] else NEIGHBOUR if word in beside else 0.0)
                for word, weight in weights.items()
            )
            shares[number] /= total
        spread = math.fsum(weight for word, weight in weights.items() if word in union) / total
        hard = [value for value in values if _is_hard(value)]
        missing = [value for value in hard if not self._has(value, places)]
        return Support(
            max([_SPREAD * spread, *shares.values()]),
            _WITH_VALUES if hard else _PLAIN,
            not missing,
            self._contradiction(values, hard, missing, shares),
        )

    def _has(self, value: Value, places: Sequence[int]) -> bool:
        """Say whether some places, or the metadata of their passages, have a value."""
        amount = number_of(value)
        chosen = [self._index.places[number] for number in places]
        passages = sorted({place.passage for place in chosen})
        if any(agree(value, candidate) for passage in passages for candidate in self._metadata[passage][1]):
            return True
        for candidate in (candidate for place in chosen for candidate in place.values):
            if agree(value, candidate):
                return True
            counts = "quantity" == value.kind == candidate.kind and "" in (value.unit, candidate.unit)
            if counts and amount is not None and amount == number_of(candidate):  # "5 unused days": five days
                return True
        texts = [*(place.text for place in chosen), *(self._metadata[passage][0] for passage in passages)]
        text = "\n".join(texts)
        if value.kind == "quantity" and not value.unit and amount in _NTH:  # "day three" is the third day
            return bool(re.search(rf"\b{_NTH[amount]}\b", text, re.IGNORECASE))
        return bool(re.search(rf"(?<![\w.,]){re.escape(value.text)}(?!\w|[.,]\d)", text, re.IGNORECASE))

    def _contradiction(
        self,
        values: Sequence[Value],
        hard: Sequence[Value],
        missing: Sequence[Value],
        shares: Mapping[int, float],
    ) -> str:
        """Return what the cited places have in place of a value of the claim; "" for none."""
        for value in hard:
            rivals = (
                (share, rival)
                for number, share in shares.items()
                for rival in self._index.places[number].values
                if comparable(value, rival) and not agree(value, rival)
            )
            most, rival = max(rivals, key=itemgetter(0), default=(0.0, value))
            agreed = max(
                (share for number, share in shares.items() if self._has(value, [number])), default=0.0
            )
            if most >= _WITH_VALUES and (value in missing or most > agreed + 2 * _RIVAL):
                return rival.text
        best = max(shares, key=shares.__getitem__, default=None)
        if best is None or shares[best] < 0.5:
            return ""
        pairs = opposed_words(values, self._index.places[best].values)
        return pairs[0][1].text if pairs else ""


def _is_hard(value: Value) -> bool:
    """Say whether the cited places must have a value: figures and dates, and names with digits."""
    if value.kind == "name":
        return bool(re.search(r"\d", value.text))
    return value.kind in ("date", "time") or (value.kind == "quantity" and value.text.lower() != "one")


Outcome = Literal["verified", "misattributed", "fabricated"]
_LENIENT, _STRICT = 0.75, 1.5


@dataclass(frozen=True, slots=True)
class Citations:
    """Whether each citation of the response was retrieved ("fabricated" where not) and says what it is cited
    for ("verified", or else "misattributed").

    `verified`: whether right citations are findings too. `most`: the number of different citations above
    which it raises `OverBudget`.
    """

    verified: bool = True
    most: int = 500

    name: ClassVar[str] = "citations"
    needs: ClassVar[frozenset[Need]] = frozenset({"response"})

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings in the order of the response. Raises `OverBudget`."""
        text = visible(inputs.response or "")
        library = Library(inputs)
        citations = find_citations(text, library)
        if not citations:
            return []
        supporter = Supporter(library)
        judgements: dict[tuple[object, ...], Judgement] = {}
        claim_texts: dict[Span, str] = {}
        findings = []
        spans = claims(text, citations)
        for number, (citation, span) in enumerate(zip(citations, spans, strict=True)):
            inputs.tick()
            if span not in claim_texts:
                claim_texts[span] = without(text, span, _overlapping(citations, span))[:LONGEST_CLAIM]
            claim = claim_texts[span]
            near = range(max(number - BESIDE, 0), min(number + BESIDE + 1, len(citations)))
            beside = [
                citations[k] for k in near if k != number and not citations[k].missing and spans[k] == span
            ]
            key = (claim, citation.parts, tuple(neighbour.parts for neighbour in beside))
            if not citation.missing and key not in judgements:
                if len(judgements) >= self.most:
                    raise OverBudget
                judgements[key] = _Claim(supporter, claim, span, beside, inputs.verdict).judge(citation)
            judgement = judgements.get(key, Judgement(False))
            kind: Outcome = (
                "fabricated" if citation.missing else "verified" if judgement.supported else "misattributed"
            )
            if kind != "verified" or self.verified:
                findings.append(_finding(text, citation, kind, judgement))
        return findings


def _overlapping(citations: Sequence[Citation], span: Span) -> Sequence[Citation]:
    first = bisect_right(citations, span[0], key=lambda citation: citation.end)
    return citations[first : bisect_left(citations, span[1], key=lambda citation: citation.start)]


@dataclass(frozen=True, slots=True)
class _Claim:
    """The words of a claim, their characters in the response, the other citations for them, and the verdict
    on the response."""

    supporter: Supporter
    words: str
    span: Span
    beside: Sequence[Citation]
    verdict: Verdict | None

    def judge(self, citation: Citation) -> Judgement:
        """Judge a citation by the passages, and by the evidence of a verdict where there is one. A document
        that has several passages, such as two editions, supports a claim where one of them or all together
        do."""
        if citation.format != "title" or len(citation.passages) < 2:
            return self._judge_all(citation)
        for parts in _by_passage(citation).values():
            judgement = self._judge_all(replace(citation, parts=tuple(parts)))
            if judgement.supported:
                return judgement
        return self.supporter.judge(self.words, citation.parts, self._factor(citation))

    def _judge_all(self, citation: Citation) -> Judgement:
        """Judge all parts of a citation. Citations that stand together may support a claim together, each a
        part of it."""
        if contradiction := self._contradiction(citation):
            return Judgement(False, (), contradiction)
        claim, supporter, factor = self.words, self.supporter, self._factor(citation)
        alone = supporter.judge(claim, citation.parts, factor)
        if not alone.supported and self.beside:
            together = [*citation.parts, *(part for neighbour in self.beside for part in neighbour.parts)]
            has_some = supporter.has_some(claim, citation.parts)
            if has_some and supporter.judge(claim, together, factor).supported:
                return Judgement(True)
        if alone.supported and len(citation.passages) > 1:
            by_passage = _by_passage(citation)
            able = tuple(k for k, parts in by_passage.items() if supporter.has_some(claim, parts))
            if len(able) < len(by_passage):
                return Judgement(False, able)
        return alone

    def _contradiction(self, citation: Citation) -> str:
        """Return what a cited passage has in place of a value of the claim, by the verdict; "" for none. A
        value in the citation itself does not count."""
        for span in self.verdict.spans if self.verdict else ():
            for value in span.contradictions:
                if value.start < citation.end and value.end > citation.start:
                    continue
                in_claim = value.start < self.span[1] and value.end > self.span[0]
                if in_claim and value.passage in citation.passages:
                    return value.instead
        return ""

    def _factor(self, citation: Citation) -> float:
        """Return the factor of the words that are needed: less than 1 where the sentence rests on a cited
        passage, more where it is suspect."""
        sentence = sentence_of(*self.span, self.verdict) if self.verdict else None
        if sentence is None:
            return 1.0
        if sentence.suspect:
            return _STRICT
        return _LENIENT if sentence.passage in citation.passages else 1.0


def _by_passage(citation: Citation) -> dict[int, list[Part]]:
    return {k: [part for part in citation.parts if part.passage == k] for k in citation.passages}


def _finding(text: str, citation: Citation, kind: Outcome, judgement: Judgement) -> Finding:
    start, end, passages = citation.start, citation.end, citation.passages
    shown, missing = one_line(text[start:end], 80), one_line(citation.missing, 60)
    able = {"verified": passages, "misattributed": judgement.elsewhere, "fabricated": ()}[kind]
    details: dict[str, Detail] = {
        "cited": clipped(text[start:end], 200),
        "format": citation.format,
        "supported_by": list(able),
    }
    words = {
        "verified": f"{shown} supports what it is cited for.",
        "misattributed": f"{shown} does not support what it is cited for{_why(citation, judgement)}.",
        "fabricated": f"{shown} was not retrieved: there is no {missing} among the passages.",
    }[kind]
    return Finding(Citations.name, kind, words, start=start, end=end, passages=passages, details=details)


def _why(citation: Citation, judgement: Judgement) -> str:
    if judgement.elsewhere:
        numbers = ", ".join(str(k + 1) for k in judgement.elsewhere[:5])
        same = set(judgement.elsewhere) <= set(citation.passages)
        return f": another part of passage {numbers} does" if same else f": passage {numbers} does"
    return f': it has "{one_line(judgement.contradicts, 60)}"' if judgement.contradicts else ""
