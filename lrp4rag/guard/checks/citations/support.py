"""Whether parts of passages say what they are cited for, by typed values and by words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lrp4rag.claims import Value, agree, comparable, find_values
from lrp4rag.claims.index import NEIGHBOUR, Index
from lrp4rag.claims.places import Place
from lrp4rag.claims.polarity import opposed_words
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.written import number_of
from lrp4rag.guard.checks.citations.citation import Part
from lrp4rag.guard.checks.citations.claims import claim_words
from lrp4rag.guard.checks.citations.marks import ORDINALS

LONGEST_CLAIM = 2000
_WITH_VALUES = 0.2
_PLAIN = 0.25
_RIVAL = 0.25
"""By how much more of a claim's words must stand around another value, or in another place, to outweigh."""
_NTH: dict[float | None, str] = dict(enumerate(ORDINALS, 1))
_SPREAD = 0.75
"""What it counts that the words of a claim stand in a passage, but in no one place."""


@dataclass(frozen=True, slots=True)
class Support:
    """How much of a claim a set of places says: `share` of its words, by rarity (0 to 1); whether `values`
    all stand there; and the value there that `contradicts` it, or ""."""

    share: float
    values: bool
    contradicts: str = ""

    def enough(self, hard: bool, factor: float = 1.0) -> bool:
        least = _WITH_VALUES if hard else _PLAIN
        return self.values and not self.contradicts and self.share >= least * factor


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether what is cited supports a claim; the passages that do, if that does not; and why not."""

    supported: bool
    elsewhere: tuple[int, ...] = ()
    contradicts: str = ""


class Supporter:
    """Looks claims up in passages. `known` is what is known of each beside its text: version and dates, which
    a claim may name."""

    def __init__(
        self, texts: Sequence[str], tick: Callable[[], None] = lambda: None, known: Sequence[str] = ()
    ) -> None:
        self._texts = texts
        self._known = [(text, find_values(text)) for text in known or [""] * len(texts)]
        self._tick = tick
        self._index = Index(texts)
        self._context = Surroundings(" ".join(texts))
        self._of: dict[int, list[int]] = {}
        for k, place in enumerate(self._index.places):
            self._of.setdefault(place.passage, []).append(k)

    def judge(self, claim: str, parts: Sequence[Part], factor: float = 1.0) -> Judgement:
        """`factor` scales how much is asked for: below 1 where other evidence speaks for the citation."""
        claim = claim[:LONGEST_CLAIM]
        words = claim_words(claim)
        values = find_values(claim, self._context)
        if not words or any(one.kind == "absence" for one in values):
            return Judgement(True)
        hard = [one for one in values if _is_hard(one)]
        cited = self._places(parts)
        own = self._support(words, values, hard, cited)
        inside = set(cited)
        others: dict[int, Support] = {}
        for passage, places in self._of.items():
            rest = [k for k in places if k not in inside]
            if rest:
                others[passage] = self._support(words, values, hard, rest)
        able = {k: one for k, one in others.items() if one.enough(bool(hard))}
        best = max((one.share for one in able.values()), default=0.0)
        supported = own.enough(bool(hard), factor) and best < own.share + _RIVAL / max(factor, 0.5)
        if supported:
            return Judgement(True)
        return Judgement(
            False,
            tuple(sorted(k for k, one in able.items() if one.share > max(own.share, 0) or not own.values)),
            own.contradicts,
        )

    def has_some(self, claim: str, parts: Sequence[Part]) -> bool:
        """Say whether parts say at least something of a claim."""
        claim = claim[:LONGEST_CLAIM]
        values = [one for one in find_values(claim, self._context) if _is_hard(one)]
        cited = self._places(parts)
        share, said = self._support(claim_words(claim), [], [], cited).share, self._said(cited)
        return share >= _WITH_VALUES or (
            share >= _WITH_VALUES / 2 and any(self._has(one, cited, said) for one in values)
        )

    def _places(self, parts: Sequence[Part]) -> list[int]:
        places = self._index.places
        return sorted({k for part in parts for k in self._of.get(part.passage, ()) if _in(places[k], part)})

    def _support(
        self, words: frozenset[str], values: Sequence[Value], hard: Sequence[Value], places: Sequence[int]
    ) -> Support:
        self._tick()
        weights = {word: max(self._index.rarity(word), 0.1) for word in words}
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
        said = self._said(places)
        missing = [one for one in hard if not self._has(one, places, said)]
        contradicts = self._contradiction(values, hard, missing, near)
        return Support(max([_SPREAD * spread, *near.values()]), not missing, contradicts)

    def _has(self, value: Value, places: Sequence[int], said: str) -> bool:
        number = number_of(value)
        passages = sorted({self._index.places[k].passage for k in places})
        known = [one for passage in passages for one in self._known[passage][1]]
        if any(agree(value, one) for one in known):
            return True
        for one in (one for k in places for one in self._index.places[k].values):
            if agree(value, one):
                return True
            counts = "quantity" == value.kind == one.kind and "" in (value.unit, one.unit)
            if counts and number is not None and number == number_of(one):  # "5 unused days" are five days
                return True
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
            found = [
                (near[k], one) for k in near for one in self._index.places[k].values if comparable(value, one)
            ]
            agreed = max((near[k] for k in near if self._has(value, [k], self._said([k]))), default=0.0)
            other = max(
                ((s, one) for s, one in found if not agree(value, one)), key=lambda two: two[0], default=None
            )
            if (
                other is not None
                and (value in missing or other[0] > agreed + 2 * _RIVAL)
                and other[0] >= _WITH_VALUES
            ):
                return other[1].text
        best = max(near, key=near.__getitem__, default=None)
        if best is None or near[best] < 0.5:
            return ""
        pairs = opposed_words(values, self._index.places[best].values)
        return pairs[0][1].text if pairs else ""

    def _said(self, places: Sequence[int]) -> str:
        chosen = [self._index.places[k] for k in places]
        known = (self._known[passage][0] for passage in sorted({one.passage for one in chosen}))
        return "\n".join([*(self._texts[one.passage][one.start : one.end] for one in chosen), *known])


def _is_hard(value: Value) -> bool:
    """Say whether it must stand in what is cited: figures and dates, and names with digits."""
    if value.kind == "name":
        return bool(re.search(r"\d", value.text))
    return value.kind in ("date", "time") or (value.kind == "quantity" and value.text.lower() != "one")


def _in(place: Place, part: Part) -> bool:
    return place.passage == part.passage and place.start < part.end and place.end > part.start
