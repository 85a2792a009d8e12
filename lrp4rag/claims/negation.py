"""Whether a claim denies what passages say, or says what they deny."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.grounds import Counterpart, Grounds
from lrp4rag.claims.places import Place
from lrp4rag.claims.poles import DIMENSIONS, Pole
from lrp4rag.claims.signed import Clause, Word

CLAUSES = 6
"""Clauses of the passages that a clause is compared with, at most."""
SENTENCES = 5
"""Sentences of the passages that a sentence is compared with, at most."""
NEAR = 40.0
"""Characters at which a word beside another one counts a third."""
CLEAR = 0.15
"""How much more of the words around a word must stand around its opposite than around its like."""
_OF_CLAUSES = (
    "best", "known", "against share", "against n", "turned n", "parity other", "rarest against", "matched",
    "agree", "contrary", "gap", "missing", "parity gap",
)  # fmt: skip


def compare_signs(grounds: Grounds, sentence: Place) -> tuple[dict[str, float], list[Counterpart]]:
    """Compare the clauses of a sentence with the passages. Return features by name, and the denials, the
    surest first."""
    if not grounds.clauses or not sentence.content:
        return {}, []
    rows = [
        _compare_clause(grounds, clause, sentence.beside(clause))
        for clause in sentence.clauses
        if clause.content
    ]
    features = {"clauses": float(len(rows))}
    for name, column in zip(_OF_CLAUSES, np.array(rows).T, strict=True):
        features[f"{name} max"] = float(column.max())
        if name in ("best", "known", "gap", "agree"):
            features[f"{name} min"] = float(column.min())
    near, denials = _compare_near(grounds, sentence)
    return features | near, denials


def _compare_clause(grounds: Grounds, clause: Clause, context: Sequence[Word]) -> list[float]:
    """Return the values of `_OF_CLAUSES` for a clause and the clauses of the passages that say most of it."""
    aligned = grounds.aligned(clause.content, context)
    agree = contrary = parity_same = parity_other = 0.0
    first = [0.0] * 8
    for rank, number in enumerate(aligned.order[:CLAUSES]):
        score = float(aligned.known_scores[number])
        if score <= 0:
            break
        theirs = grounds.clauses[number]
        matches = grounds.matches(clause.content, theirs.content)
        against = [match.weight for match in matches if match.sign < 0]
        share = sum(against) / (sum(match.weight for match in matches) or 1.0)
        turned = sum(match.opposite for match in matches)
        agree, contrary = max(agree, score * (1 - share)), max(contrary, score * share)
        is_against = clause.sign * theirs.sign * (-1) ** turned < 0
        parity_other = max(parity_other, score * is_against)
        parity_same = max(parity_same, score * (not is_against))
        if not rank:
            best = float(aligned.scores[number])
            rarest = max(against, default=0.0)
            first = [best, score, share, len(against), turned, score * is_against, rarest, len(matches)]
    return [*first, agree, contrary, contrary - agree, aligned.missing, parity_other - parity_same]


def _compare_near(grounds: Grounds, sentence: Place) -> tuple[dict[str, float], list[Counterpart]]:
    """Compare each word and each pole of a sentence with those that stand among the same words in the
    passages."""
    comparison = _Comparison(grounds, sentence)
    denied_there = 0.0
    for rank, (place, _) in enumerate(grounds.aligned(sentence.content).sentences(SENTENCES)):
        if place.content:
            share = comparison.add(place)
            if rank < 3 and place.denials:
                denied_there = max(denied_there, share)
    denies = sentence.denials
    features = comparison.features() | {
        "denials here": float(denies),
        "denied there": denied_there,
        "denied here only": float(denies > 0 and not denied_there),
        "denied there only": denied_there * (not denies),
    }
    return features, comparison.lasting()


class _Comparison:
    """The words and poles of a sentence, and the share of the words around each that stand around the same
    word or pole of passages, and around its opposite."""

    def __init__(self, grounds: Grounds, sentence: Place) -> None:
        self._grounds, self._words, self._poles = grounds, sentence.content, sentence.poles
        self._weights = np.array(
            [grounds.weight(word.base) if grounds.related(word.base) else 0.0 for word in self._words]
        )
        self._at, self._pole_at = _starts(self._words), _starts(self._poles)
        self._tables = {name: np.zeros(len(self._words)) for name in ("same", "denied", "turned")}
        self._pole_for, self._pole_against = np.zeros(len(self._poles)), np.zeros(len(self._poles))
        self._denials: list[Counterpart] = []

    def add(self, place: Place) -> float:
        """Compare with a sentence of the passages; return the share of the words that it has."""
        rows = (self._grounds.related(word.base) for word in self._words)
        strength = np.array([[row.get(word.base, 0.0) for word in place.content] for row in rows])
        shared = np.abs(strength) * self._weights[:, None]
        there = _starts(place.content)
        self._add_words(place, strength, _support(shared, self._weights, self._at, there))
        if self._poles and place.poles:
            places = self._at, there, self._pole_at, _starts(place.poles)
            self._add_poles(place, _support_of_poles(shared, self._weights, *places))
        return float(shared.max(1).sum() / (self._weights.sum() + 1e-9))

    def _add_words(self, place: Place, strength: NDArray[np.float64], support: NDArray[np.float64]) -> None:
        for k, j in zip(*np.nonzero(strength), strict=True):
            word, place_word, turned = self._words[k], place.content[j], strength[k, j] < 0
            agrees = word.sign * place_word.sign == (-1 if turned else 1)
            table = self._tables["same" if agrees else "turned" if turned else "denied"]
            if support[k, j] > table[k]:
                table[k] = support[k, j]
                if not agrees:
                    self._denials.append(_denial(word, place_word, place, support[k, j]))

    def _add_poles(self, place: Place, support: NDArray[np.float64]) -> None:
        for k, pole in enumerate(self._poles):
            for j, place_pole in enumerate(place.poles):
                if place_pole.dimension != pole.dimension:
                    continue
                if place_pole.sign == pole.sign:
                    self._pole_for[k] = max(self._pole_for[k], support[k, j])
                elif support[k, j] > self._pole_against[k]:
                    self._pole_against[k] = support[k, j]
                    self._denials.append(_denial(pole, place_pole, place, support[k, j]))

    def features(self) -> dict[str, float]:
        """Return features of how much more of the words around a word stand around its opposite."""
        features = dict.fromkeys((f"{name} near" for name in DIMENSIONS), 0.0)
        pole_gaps = self._pole_against - self._pole_for
        for pole, gap in zip(self._poles, pole_gaps, strict=True):
            name = f"{pole.dimension} near"
            features[name] = max(features[name], float(gap), key=abs)
        gaps = {name: self._tables[name] - self._tables["same"] for name in ("denied", "turned")}
        for name, values in gaps.items():
            features[f"{name} near"] = float(values.max())
            features[f"{name} near n"] = float((values > CLEAR).sum())
            features[f"{name} near sum"] = float(np.maximum(values, 0).sum())
            features[f"{name} against"] = float(self._tables[name].max())
        every = np.concatenate((np.maximum(gaps["denied"], gaps["turned"]), pole_gaps))
        return features | {
            "near": float(every.max()),
            "near two": float(np.sort(every)[-2:].sum()),
            "word for": float(self._tables["same"].max()),
            "pole near": float(pole_gaps.max(initial=0.0)),
            "pole near n": float((pole_gaps > CLEAR).sum()),
            "pole against": float(self._pole_against.max(initial=0.0)),
            "pole for least": float(self._pole_for.min(initial=1.0)),
            "poles": float(len(self._poles)),
            "poles alone": float(((self._pole_against == 0) & (self._pole_for == 0)).sum()),
        }

    def lasting(self) -> list[Counterpart]:
        """Return the denials that no other place of the passages outweighs, the surest first."""
        agreed = dict(zip((word.start for word in self._words), self._tables["same"], strict=True))
        agreed |= dict(zip((pole.start for pole in self._poles), self._pole_for, strict=True))
        lasting = [denial for denial in self._denials if denial.weight > agreed[denial.start] + CLEAR]
        return sorted(lasting, key=lambda denial: -denial.weight)


def _support(
    shared: NDArray[np.float64],
    weights: NDArray[np.float64],
    at: NDArray[np.float64],
    there: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return for each word of a claim and of a passage the share, 0 to 1, of the words near the first that
    stand near the second: (words, words there). `shared` has the weight of each pair, `weights` those of the
    claim's words, `at` and `there` the characters at which they stand."""
    near, near_there = _closeness(at, at), _closeness(there, there)
    most = near @ weights - 0.5 * weights
    np.fill_diagonal(near, 0)
    np.fill_diagonal(near_there, 0)
    best = (shared[:, :, None] * near_there[None]).max(1)
    supported: NDArray[np.float64] = (near @ best + 0.5 * shared) / (most + 1.0)[:, None]
    return supported


def _support_of_poles(
    shared: NDArray[np.float64],
    weights: NDArray[np.float64],
    at: NDArray[np.float64],
    there: NDArray[np.float64],
    claim_poles: NDArray[np.float64],
    place_poles: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the share, as `_support`, of the words near each pole of a claim (at `claim_poles`) that stand
    near each pole of a passage (at `place_poles`)."""
    near = _closeness(claim_poles, at)
    best = (shared[:, :, None] * _closeness(there, place_poles)[None]).max(1)
    supported: NDArray[np.float64] = near @ best / (near @ weights + 1.0)[:, None]
    return supported


def _closeness(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    closeness: NDArray[np.float64] = np.exp(-np.abs(first[:, None] - second) / NEAR)
    return closeness


def _starts(items: Sequence[Word | Pole]) -> NDArray[np.float64]:
    return np.array([item.start for item in items], float)


def _denial(item: Word | Pole, place_item: Word | Pole, place: Place, weight: float) -> Counterpart:
    return Counterpart(item.start, item.end, place.passage, place_item.start, place_item.end, float(weight))
