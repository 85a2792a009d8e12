"""`Citations`: whether parts of passages say what they are cited for, by typed values and by words."""

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
from lrp4rag.claims.places import Place
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
"""Citations before and after one that may be cited for the same."""
_WITH_VALUES = 0.2
_PLAIN = 0.25
_RIVAL = 0.25
"""By how much more of a claim's words must stand around another value, or in another place, to outweigh."""
_NTH: dict[float | None, str] = dict(enumerate(ORDINALS, 1))
_SPREAD = 0.75
"""What it counts that the words of a claim stand in a passage, but in no one place."""


@dataclass(frozen=True, slots=True)
class Support:
    """How much of a claim a set of places says: `share` of its words, by rarity (0 to 1), of which `least`
    would do; whether `values` all stand there; and the value there that `contradicts` it, or ""."""

    share: float
    least: float
    values: bool
    contradicts: str

    def enough(self, factor: float = 1.0) -> bool:
        return self.values and not self.contradicts and self.share >= self.least * factor


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether what is cited supports a claim; the passages that do, if that does not; and why not."""

    supported: bool
    elsewhere: tuple[int, ...] = ()
    contradicts: str = ""


class Supporter:
    """Looks claims up in passages, and in what is known of each beside its text: version and dates, which a
    claim may name."""

    def __init__(self, library: Library) -> None:
        self._known = [(text, find_values(text)) for text in library.known]
        self._tick = library.tick
        self._index = Index(library.texts)
        self._context = Surroundings(" ".join(library.texts))
        self._of: dict[int, list[int]] = {}
        for k, place in enumerate(self._index.places):
            self._of.setdefault(place.passage, []).append(k)

    def judge(self, claim: str, parts: Sequence[Part], factor: float = 1.0) -> Judgement:
        """`factor` scales how much is asked for: below 1 where other evidence speaks for the citation."""
        words = claim_words(claim)
        values = find_values(claim, self._context)
        if not words or any(one.kind == "absence" for one in values):
            return Judgement(True)
        cited = self._places(parts)
        own = self._support(words, values, cited)
        inside = set(cited)
        able: dict[int, Support] = {}
        for passage, places in self._of.items():
            rest = [k for k in places if k not in inside]
            if rest and (support := self._support(words, values, rest)).enough():
                able[passage] = support
        best = max((one.share for one in able.values()), default=0.0)
        if own.enough(factor) and best < own.share + _RIVAL / max(factor, 0.5):
            return Judgement(True)
        elsewhere = (k for k, one in able.items() if one.share > own.share or not own.values)
        return Judgement(False, tuple(elsewhere), own.contradicts)

    def has_some(self, claim: str, parts: Sequence[Part]) -> bool:
        """Say whether parts say at least something of a claim."""
        cited = self._places(parts)
        share = self._support(claim_words(claim), [], cited).share
        if not _WITH_VALUES / 2 <= share < _WITH_VALUES:
            return share >= _WITH_VALUES
        return any(self._has(one, cited) for one in find_values(claim, self._context) if _is_hard(one))

    def _places(self, parts: Sequence[Part]) -> list[int]:
        places = self._index.places
        return sorted({k for part in parts for k in self._of.get(part.passage, ()) if _in(places[k], part)})

    def _support(self, words: frozenset[str], values: Sequence[Value], places: Sequence[int]) -> Support:
        self._tick()
        weights = self._index.weights(words)
        total = math.fsum(weights.values()) or 1.0
        own = {k: self._index.places[k].words for k in places}
        there = frozenset().union(*own.values())
        near = {}
        for k in places:
            beside = own.get(k - 1, frozenset()) | own.get(k + 1, frozenset())
            near[k] = math.fsum(
                weight * (1.0 if word in own[k] else NEIGHBOUR if word in beside else 0.0)
                for word, weight in weights.items()
            )
            near[k] /= total
        spread = math.fsum(weight for word, weight in weights.items() if word in there) / total
        hard = [one for one in values if _is_hard(one)]
        missing = [one for one in hard if not self._has(one, places)]
        return Support(
            max([_SPREAD * spread, *near.values()]),
            _WITH_VALUES if hard else _PLAIN,
            not missing,
            self._contradiction(values, hard, missing, near),
        )

    def _has(self, value: Value, places: Sequence[int]) -> bool:
        number = number_of(value)
        passages = {self._index.places[k].passage for k in places}
        if any(agree(value, one) for passage in passages for one in self._known[passage][1]):
            return True
        for one in (one for k in places for one in self._index.places[k].values):
            if agree(value, one):
                return True
            counts = "quantity" == value.kind == one.kind and "" in (value.unit, one.unit)
            if counts and number is not None and number == number_of(one):  # "5 unused days" are five days
                return True
        said = self._said(places)
        if value.kind == "quantity" and not value.unit and number in _NTH:  # "day three" is the third day
            return bool(re.search(rf"\b{_NTH[number]}\b", said, re.IGNORECASE))
        return bool(re.search(rf"(?<![\w.,]){re.escape(value.text)}(?!\w|[.,]\d)", said, re.IGNORECASE))

    def _contradiction(
        self,
        values: Sequence[Value],
        hard: Sequence[Value],
        missing: Sequence[Value],
        near: Mapping[int, float],
    ) -> str:
        """What stands in the cited places where the claim has another value."""
        for value in hard:
            rivals = (
                (near[k], one)
                for k in near
                for one in self._index.places[k].values
                if comparable(value, one) and not agree(value, one)
            )
            share, rival = max(rivals, key=itemgetter(0), default=(0.0, value))
            agreed = max((near[k] for k in near if self._has(value, [k])), default=0.0)
            if share >= _WITH_VALUES and (value in missing or share > agreed + 2 * _RIVAL):
                return rival.text
        best = max(near, key=near.__getitem__, default=None)
        if best is None or near[best] < 0.5:
            return ""
        pairs = opposed_words(values, self._index.places[best].values)
        return pairs[0][1].text if pairs else ""

    def _said(self, places: Sequence[int]) -> str:
        chosen = [self._index.places[k] for k in places]
        known = (self._known[passage][0] for passage in sorted({one.passage for one in chosen}))
        return "\n".join([*(one.text for one in chosen), *known])


def _is_hard(value: Value) -> bool:
    """Say whether it must stand in what is cited: figures and dates, and names with digits."""
    if value.kind == "name":
        return bool(re.search(r"\d", value.text))
    return value.kind in ("date", "time") or (value.kind == "quantity" and value.text.lower() != "one")


def _in(place: Place, part: Part) -> bool:
    return place.passage == part.passage and place.start < part.end and place.end > part.start


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
        library = Library(inputs)
        found = find_citations(text, library)
        if not found:
            return []
        supporter = Supporter(library)
        seen: dict[tuple[object, ...], Judgement] = {}
        claimed: dict[Span, str] = {}
        findings = []
        spans = claims(text, found)
        for number, (one, span) in enumerate(zip(found, spans, strict=True)):
            inputs.tick()
            if span not in claimed:
                claimed[span] = without(text, span, _overlapping(found, span))[:LONGEST_CLAIM]
            claim = claimed[span]
            near = range(max(number - BESIDE, 0), min(number + BESIDE + 1, len(found)))
            beside = [found[k] for k in near if k != number and not found[k].missing and spans[k] == span]
            key = (claim, one.parts, tuple(other.parts for other in beside))
            if not one.missing and key not in seen:
                if len(seen) >= self.most:
                    raise OverBudget
                seen[key] = _Claim(supporter, claim, span, beside, inputs.verdict).judge(one)
            judged = seen.get(key, Judgement(False))
            kind: Outcome = (
                "fabricated" if one.missing else "verified" if judged.supported else "misattributed"
            )
            if kind != "verified" or self.verified:
                findings.append(_finding(text, one, kind, judged))
        return findings


def _overlapping(found: Sequence[Citation], span: Span) -> Sequence[Citation]:
    first = bisect_right(found, span[0], key=lambda one: one.end)
    return found[first : bisect_left(found, span[1], key=lambda one: one.start)]


@dataclass(frozen=True, slots=True)
class _Claim:
    """The words that a citation is cited for, their characters in the response, what else is cited for them,
    and the verdict on the response."""

    supporter: Supporter
    words: str
    span: Span
    beside: Sequence[Citation]
    verdict: Verdict | None

    def judge(self, one: Citation) -> Judgement:
        """By the passages, and by the evidence of a verdict where there is one. A document that has several
        passages, such as two editions of it, supports what one of them does, or all together do."""
        if one.format != "title" or len(one.passages) < 2:
            return self._judge_whole(one)
        ways = [
            replace(one, parts=tuple(part for part in one.parts if part.passage == k)) for k in one.passages
        ]
        found = next((judged for judged in map(self._judge_whole, ways) if judged.supported), None)
        return found or self.supporter.judge(self.words, one.parts, self._factor(one))

    def _judge_whole(self, one: Citation) -> Judgement:
        """Citations that stand together may support a claim together, each a part of it."""
        contradicted = self._contradicted(one)
        if contradicted:
            return Judgement(False, (), contradicted)
        claim, supporter, factor = self.words, self.supporter, self._factor(one)
        alone = supporter.judge(claim, one.parts, factor)
        if not alone.supported and self.beside:
            together = [*one.parts, *(part for other in self.beside for part in other.parts)]
            if supporter.has_some(claim, one.parts) and supporter.judge(claim, together, factor).supported:
                return Judgement(True)
        if alone.supported and len(one.passages) > 1:
            of = {k: [part for part in one.parts if part.passage == k] for k in one.passages}
            able = tuple(k for k, parts in of.items() if supporter.has_some(claim, parts))
            if len(able) < len(of):
                return Judgement(False, able)
        return alone

    def _contradicted(self, one: Citation) -> str:
        """What a cited passage has in place of a value of the claim, by the verdict; what it is cited by
        is no such value."""
        for suspect in self.verdict.spans if self.verdict else ():
            for other in suspect.contradictions:
                if other.start < one.end and other.end > one.start:
                    continue
                if other.start < self.span[1] and other.end > self.span[0] and other.passage in one.passages:
                    return other.instead
        return ""

    def _factor(self, one: Citation) -> float:
        """Return how much is asked for: less where the sentence rests on what is cited, more where it is
        suspect."""
        sentence = sentence_of(*self.span, self.verdict) if self.verdict else None
        if sentence is None:
            return 1.0
        if sentence.suspect:
            return _STRICT
        return _LENIENT if sentence.passage in one.passages else 1.0


def _finding(text: str, one: Citation, kind: Outcome, judged: Judgement) -> Finding:
    cited = text[one.start : one.end]
    shown, missing = one_line(cited, 80), one_line(one.missing, 60)
    able = {"verified": one.passages, "misattributed": judged.elsewhere, "fabricated": ()}[kind]
    details: dict[str, Detail] = {
        "cited": clipped(cited, 200),
        "format": one.format,
        "supported_by": list(able),
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
