"""Conditions of a claim and of passages: those that a claim leaves out, adds, widens or turns round."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import product

from lrp4rag.claims.conditions import LIMITS, WIDENERS, Restriction, kinds
from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.lexicon import Senses, relation
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import Clause, Word

SENTENCES = 3
"""Sentences of the passages whose conditions are compared with those of a clause, at most."""
UNSAID = 0.5
"""A condition is left out where more than this share of its words is."""

_STRONG = frozenset({"exception", "only", "if", "limit", "mostly"})
_LOSABLE = _STRONG - {"limit"}
_OPPOSITE_PAIRS = (
    ("wide", "never"), ("wide", "only"), ("wide", "need"), ("never", "need"), ("never", "only"),
    ("before", "after"), ("most", "least"),
)  # fmt: skip
_OPPOSITES = frozenset(frozenset(pair) for pair in _OPPOSITE_PAIRS)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Characters `start` to `end` of passage `passage`: a condition that a response leaves out, and how well
    what it belongs to fits the response (0 to 1)."""

    passage: int
    start: int
    end: int
    weight: float


def compare_restrictions(
    grounds: Grounds, sentence: Place, answer_words: Collection[str]
) -> tuple[dict[str, float], list[LeftOut]]:
    """Compare the conditions of a sentence with those of the passages. Return features by name, and the
    conditions that it leaves out, the surest first. `answer_words` are the base forms of the response so
    far."""
    if not sentence.clauses:
        return {}, []
    features = {
        f"{label} {kind}": float(len(pattern.findall(sentence.text)))
        for label, patterns in (("wide", WIDENERS), ("limit", LIMITS))
        for kind, pattern in patterns.items()
    }
    if not grounds.clauses or not sentence.content:
        return features, []
    senses = Senses([*answer_words, *(word.base for word in grounds.question_words)])
    left: list[LeftOut] = []
    rows = [
        _compare_clause(grounds, sentence, clause, senses, left)
        for clause in sentence.clauses
        if clause.content
    ]
    for name in rows[0]:
        features[f"{name} max"] = max(row[name] for row in rows)
    features |= _turned(grounds, sentence)
    return features, sorted(left, key=lambda condition: -condition.weight)


def _compare_clause(
    grounds: Grounds, sentence: Place, clause: Clause, senses: Senses, left: list[LeftOut]
) -> dict[str, float]:
    """Return the features of a clause; add to `left` the conditions that are left out."""
    names = ("drop", "drop strong", "widened", "narrowed", "limits", "universal", "best score")
    row = dict.fromkeys(names, 0.0)
    row |= {f"new {kind}": 0.0 for kind in WIDENERS} | {f"lost {kind}": 0.0 for kind in _LOSABLE}

    def add(name: str, value: float) -> None:
        row[name] = max(row[name], value)

    wide = kinds(WIDENERS, sentence.source, clause.start, clause.end)
    limited = kinds(LIMITS, sentence.source, clause.start, clause.end)
    aligned = grounds.aligned(clause.content, sentence.beside(clause))
    for place, score in aligned.sentences(SENTENCES):
        strong = len(place.limits & _STRONG)
        universal = score * (bool(wide) and not place.wideners)
        add("best score", score)
        add("limits", score * strong)
        add("universal", universal)
        add("widened", universal * strong)
        add("narrowed", score * len((limited - place.limits) & _STRONG))
        for kind in wide - place.wideners:
            add(f"new {kind}", score)
        for kind in (place.limits & _LOSABLE) - sentence.limits:
            add(f"lost {kind}", score)
        for restriction in place.restrictions:
            unsaid = 1 - _share(grounds, restriction.words, senses)
            add("drop", score * unsaid)
            if restriction.kind in ("never", "only", "need"):
                add("drop strong", score * unsaid)
            if unsaid > UNSAID:
                left.append(LeftOut(place.passage, restriction.start, restriction.end, score * unsaid))
    return row


def _turned(grounds: Grounds, sentence: Place) -> dict[str, float]:
    """Return features of the conditions that passages have with the same words and another kind."""
    features = dict.fromkeys(("cond same", "cond contrary", "cond wide", "cond added", "cond n"), 0.0)
    for restriction in sentence.restrictions:
        same = contrary = 0.0
        aligned = grounds.aligned(restriction.words, sentence.content)
        for place, _ in aligned.sentences(SENTENCES):
            for candidate in place.restrictions:
                senses = Senses(word.base for word in candidate.words)
                overlap = _share(grounds, restriction.words, senses)
                opposite = _are_opposite(restriction, candidate) if overlap else None
                contrary = max(contrary, overlap * (opposite is True))
                same = max(same, overlap * (opposite is False))
        features["cond n"] += 1
        features["cond same"] = max(features["cond same"], same)
        features["cond contrary"] = max(features["cond contrary"], contrary - same)
        if restriction.kind == "wide":
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
    pairs = product(first.words, second.words)
    turned = any(relation(word.base, second_word.base) == "opposite" for word, second_word in pairs)
    return opposite ^ first.is_denied ^ second.is_denied ^ turned


def _share(grounds: Grounds, words: Iterable[Word], senses: Senses) -> float:
    """Return the share of words, weighted by rarity, that have one of some senses."""
    weights = {base: grounds.rarity(base) for base in sorted({word.base for word in words})}
    shared = (weight for base, weight in weights.items() if base in senses)
    return sum(shared) / sum(weights.values())
