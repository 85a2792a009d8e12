"""Conditions of a claim and of passages: those that a claim leaves out, adds, widens or turns round."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.lexicon import have_sense, relation
from lrp4rag.claims.signed import Clause, Word, signed_clauses

SENTENCES = 3
"""Sentences of the passages whose conditions are compared with those of a clause, at most."""
UNSAID = 0.5
"""The share of a condition's words that a response leaves out with it, at least."""

_TIMES = (
    r"(?! (?:few |other |second |single )?(?:years?|months?|weeks?|days?|hours?|minutes?|mornings?|evenings?"
    r"|nights?|times?|round|over|in all|of (?:them|these|which))\b)"
)
"""Behind "every": a rate or a time, which widens nothing."""
_WIDENING = {
    "even": r"even (?:if|when|though|without|after|before|for|on|in|to|at)|whether or not|regardless"
    "|no matter"
    r"|whatever|however (?:old|long|much|many|far|big|large|late|small|high)|irrespective|all the same"
    r"|(?:not|nor) even|with or without|or not\b|or no \w{1,20}",
    "case": r"in (?:any|every|each|all) (?:case|event|circumstance)s?|always|automatically|without (?:any )?"
    r"(?:exception|condition|limit|reservation|restriction)s?|unconditionally|at any time|at all times"
    r"|for good"
    r"|in all|of (?:any|every) kind|no conditions?|under all circumstances|anyway|unlimited|at will|freely"
    r"|for ?ever|permanently|by any(?:one|body)|wherever|whenever|however"
    r"|any (?:age|time|day|amount|number|speed|size)",
    "all": rf"(?:all|every|each|any){_TIMES}|everyone|everybody|anyone|anybody|everything|anything|everywhere"
    r"|anywhere|whoever|entire(?:ly)?|whole|both|no matter",
    "too": r"includ(?:ing|ed|es?)|also|too|as well(?: as)?|even|and every(?:thing|body|one) else|likewise"
    r"|just as|equally|same",
}
_LIMITING = {
    "exception": r"unless|except(?:ing)?|apart from|aside from|other than|with the exception of|excluding"
    r"|save for|but not|not (?:for|on|in|at|to|if|when)|without",
    "only": r"only|solely|exclusively|merely|nothing but|just",
    "if": r"if|provided(?: that)?|providing|as long as|so long as|on condition|in (?:the )?case"
    "|subject to|should"
    r"|depending on|assuming|given that|whoever|anyone who|those who|people who|who|whose",
    "when": r"when|whenever|once|while|where|during|outside|upon|as soon as",
    "time": r"until|till|before|after|within|by|from|since|at the latest|at the earliest|no later than"
    "|later than"
    r"|first|in advance|beforehand",
    "limit": r"up to|at most|at least|no more than|not more than|less than|more than|fewer than|under"
    "|over|above"
    r"|below|maximum|minimum|limited to|(?:no|not) (?:longer|older|younger) than"
    r"|or (?:more|less|older|younger|below|above)|at the most|between",
    "with": r"with|for|on|in(?: the)? case of|against",
    "mostly": r"usually|normally|generally|mostly|most|often|sometimes|certain|some|partly|may|might"
    "|in principle"
    r"|ordinary|perhaps|probably",
}
_WIDENERS = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _WIDENING.items()}
_LIMITS = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _LIMITING.items()}
_STRONG = ("exception", "only", "if", "limit", "mostly")
_LOSABLE = ("exception", "only", "if", "mostly")
_BEGINNING = re.compile(
    r"\b(?P<wide>(?:even|also) (?:if|when|though|without|after|before|for|on|with)|with or without"
    r"|whether or not|whether|regardless of|no matter|including|included|whatever|however)\b"
    r"|\b(?P<never>unless|except(?: for)?|apart from|with the exception of|excluding|other than|but not"
    r"|not if"
    r"|without|not (?:for|on|in|at|when))\b"
    r"|\b(?P<only>only (?:if|when|once|for|with|after|where|on|in|to|at|by|from|until|before)|only"
    r"|nobody but)\b"
    r"|\b(?P<need>if|provided(?: that)?|as long as|so long as|on condition that|when|whenever|once|where"
    r"|should"
    r"|in case of|those who|people who|who|subject to|with|for)\b"
    r"|\b(?P<before>before|until|till|by|prior to|in advance|beforehand)\b"
    r"|\b(?P<after>after|from|since|afterwards|later)\b"
    r"|\b(?P<most>up to|at most|no more than|not more than|less than|fewer than|under|below|within|maximum)\b"
    r"|\b(?P<least>at least|no less than|more than|over|above|minimum|beyond)\b",
    re.IGNORECASE,
)
_ENDING = re.compile(r"[;:()\n,]|(?<=[.!?])\s|\bbut\b|\bwhile\b", re.IGNORECASE)
_OPPOSITE_PAIRS = (
    ("wide", "never"), ("wide", "only"), ("wide", "need"), ("never", "need"), ("never", "only"),
    ("before", "after"), ("most", "least"),
)  # fmt: skip
_OPPOSITES = frozenset(frozenset(pair) for pair in _OPPOSITE_PAIRS)


@dataclass(frozen=True, slots=True)
class Restriction:
    """Characters `start` to `end` of a text: a condition, its `kind`, the content words in it, and whether it
    has a denial inside."""

    start: int
    end: int
    kind: str
    words: tuple[Word, ...]
    is_denied: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Characters `start` to `end` of passage `passage`: a condition that a response leaves out, and how well
    what it belongs to fits the response (0 to 1)."""

    passage: int
    start: int
    end: int
    weight: float


def restrictions(text: str, start: int, end: int) -> tuple[Restriction, ...]:
    """Return the conditions in the characters `start` to `end` of a text; each ends with its clause, or where
    the next begins."""
    found = []
    signs = list(_BEGINNING.finditer(text, start, end))
    borders = [match.start() for match in _ENDING.finditer(text, start, end)]
    for sign, following in zip(signs, [*(match.start() for match in signs[1:]), end], strict=False):
        last = min([following, *(border for border in borders if border > sign.end())])
        inner = list(signed_clauses(text, sign.end(), last))
        if words := tuple(word for clause in inner for word in clause.content):
            denied = math.prod(clause.sign for clause in inner) < 0
            found.append(Restriction(sign.start(), last, str(sign.lastgroup), words, denied))
    return tuple(found)


def compare_restrictions(
    grounds: Grounds, text: str, clauses: Sequence[Clause], said: Collection[str]
) -> tuple[dict[str, float], list[LeftOut]]:
    """Compare the conditions of a sentence of a `text` with those of the passages: features by name, and the
    conditions that it leaves out, the surest first. `said` are the base forms of the whole text."""
    if not clauses:
        return {}, []
    start, end = clauses[0].start, clauses[-1].end
    features = {
        f"{label} {kind}": float(len(pattern.findall(text[start:end])))
        for label, patterns in (("wide", _WIDENERS), ("limit", _LIMITS))
        for kind, pattern in patterns.items()
    }
    every = [word for clause in clauses for word in clause.content]
    if not grounds.placed or not every:
        return features, []
    known = frozenset(said) | {word.base for word in grounds.asked}
    left: list[LeftOut] = []
    unlimited = frozenset(kind for kind in _LOSABLE if not features[f"limit {kind}"])
    rows = [
        _compare_clause(grounds, text, clause, every, unlimited, known, left)
        for clause in clauses
        if clause.content
    ]
    for name in rows[0]:
        features[f"{name} max"] = max(row[name] for row in rows)
    features |= _turned(grounds, restrictions(text, start, end), every)
    return features, sorted(left, key=lambda each: -each.weight)


def _kinds(
    patterns: dict[str, re.Pattern[str]], text: str, start: int = 0, end: int | None = None
) -> frozenset[str]:
    end = len(text) if end is None else end
    return frozenset(kind for kind, pattern in patterns.items() if pattern.search(text, start, end))


def _wideners(text: str, start: int, end: int) -> frozenset[str]:
    return _kinds(_WIDENERS, text, start, end)


def _limits(text: str, start: int, end: int) -> frozenset[str]:
    return _kinds(_LIMITS, text, start, end)


def _compare_clause(
    grounds: Grounds,
    text: str,
    clause: Clause,
    every: Sequence[Word],
    unlimited: frozenset[str],
    known: frozenset[str],
    left: list[LeftOut],
) -> dict[str, float]:
    """Return the features of a clause; add to `left` the conditions that are left out. `unlimited` are the
    kinds of limits that its sentence has none of."""
    names = ("drop", "drop strong", "widened", "narrowed", "limits", "universal", "best score")
    row = dict.fromkeys(names, 0.0)
    row |= {f"new {kind}": 0.0 for kind in _WIDENERS} | {f"lost {kind}": 0.0 for kind in _LOSABLE}

    def add(name: str, value: float) -> None:
        row[name] = max(row[name], value)

    wide, limited = _wideners(text, clause.start, clause.end), _limits(text, clause.start, clause.end)
    context = [word for word in every if not clause.start <= word.start < clause.end]
    for sentence, score in grounds.aligned(clause.content, context).sentences(grounds, SENTENCES):
        wide_there, limited_there = grounds.found(_wideners, sentence), grounds.found(_limits, sentence)
        strong = len(limited_there.intersection(_STRONG))
        universal = score * (bool(wide) and not wide_there)
        add("best score", score)
        add("limits", score * strong)
        add("universal", universal)
        add("widened", universal * strong)
        add("narrowed", score * len((limited - limited_there).intersection(_STRONG)))
        for kind in wide - wide_there:
            add(f"new {kind}", score)
        for kind in limited_there & unlimited:
            add(f"lost {kind}", score)
        for each in grounds.found(restrictions, sentence):
            unsaid = 1 - _share(grounds, each.words, known)
            add("drop", score * unsaid)
            if each.kind in ("never", "only", "need"):
                add("drop strong", score * unsaid)
            if unsaid > UNSAID:
                left.append(LeftOut(grounds.sentences[sentence][0], each.start, each.end, score * unsaid))
    return row


def _turned(grounds: Grounds, own: Iterable[Restriction], every: Sequence[Word]) -> dict[str, float]:
    """Return features of the conditions that passages have with the same words and another kind."""
    features = dict.fromkeys(("cond same", "cond contrary", "cond wide", "cond added", "cond n"), 0.0)
    for each in own:
        same = contrary = 0.0
        aligned = grounds.aligned(each.words, every)
        for sentence, _ in aligned.sentences(grounds, SENTENCES):
            for other in grounds.found(restrictions, sentence):
                overlap = _share(grounds, each.words, {word.base for word in other.words})
                opposite = _are_opposite(each, other) if overlap else None
                contrary = max(contrary, overlap * (opposite is True))
                same = max(same, overlap * (opposite is False))
        features["cond n"] += 1
        features["cond same"] = max(features["cond same"], same)
        features["cond contrary"] = max(features["cond contrary"], contrary - same)
        if each.kind == "wide":
            features["cond wide"] = max(features["cond wide"], contrary - same)
        features["cond added"] = max(features["cond added"], 1 - float(aligned.scores.max()))
    return features


def _are_opposite(first: Restriction, second: Restriction) -> bool | None:
    """Say whether two conditions with the same words are opposite; None where their kinds do not tell."""
    opposite = frozenset((first.kind, second.kind)) in _OPPOSITES
    if not opposite and first.kind != second.kind:
        return None
    if "wide" in (first.kind, second.kind):
        return opposite
    turned = any(
        relation(one.base, other.base) == "opposite" for one in first.words for other in second.words
    )
    return opposite ^ first.is_denied ^ second.is_denied ^ turned


def _share(grounds: Grounds, words: Iterable[Word], others: Collection[str]) -> float:
    """Return the share of words, weighted by rarity, that have one of the same sense among `others`."""
    weights = {base: grounds.rarity(base) for base in sorted({word.base for word in words})}
    shared = (weight for base, weight in weights.items() if have_sense(others, base))
    return sum(shared) / sum(weights.values())
