"""`Comparer`: decide by slots whether passages say what the clauses of a response say.

A value fills a slot that the words around it, its unit and its subject describe. It is contradicted where
the passages have it in another slot only, and another value in this one: "the Brio 3: 38 minutes" where 38
minutes are said of the Brio 5 and 22 minutes of the Brio 3.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.arithmetic import computed
from lrp4rag.claims.claim import Claim, Subject, are_siblings, claims_of, names_in, share_name
from lrp4rag.claims.clauses import Span
from lrp4rag.claims.evidence import Evidence, evidence_of
from lrp4rag.claims.find import find_values
from lrp4rag.claims.index import Index
from lrp4rag.claims.lookup import Lookup
from lrp4rag.claims.places import Place, stems_of, tokens_of
from lrp4rag.claims.surroundings import NOTHING
from lrp4rag.claims.value import Value, agree, comparable
from lrp4rag.claims.written import number_of, numbers_in

Status = Literal["supported", "contradicted", "unsupported", "computed"]
Array = NDArray[np.float64]

SENTENCE, LEAD, NEIGHBOUR, PASSAGE = 0.7, 0.6, 0.4, 0.2
"""Weight of a word in the clause's sentence, its heading or head, the sentences beside, the passage."""
OTHER_SLOT = 0.5
"""Weight of a value in the clause's sentence: a word there belongs to all clauses, a value to its own."""
OF_NAME, OF_OTHER = 0.8, 0.3
"""Weight of a name where it is the subject of a clause that does not have it; at most, where another is."""
BARE = 0.9
"""Weight of a number without its unit: "38" below "price in euros"."""
FAMILY = 0.8
"""Weight of a word of the same family: the same five letters at the beginning."""
_LETTERS = 5
REACH = 4.0
"""Words away from a value at which another one describes its slot 1/e as much as beside it."""
OTHER_CLAUSE = 0.5
"""Weight of the words of a claim's sentence outside its clause."""
SUBJECT, ASKED = 0.5, 0.1
"""Weight of the subject of a claim that stands before it, and of the question's words."""
_LEAST = 0.1
_HALF = re.compile(r"\bhalf\b|\u00bd", re.IGNORECASE)
FITS, APART = 0.35, 0.15
"""How well a rival fits the slot, and how much better than the value itself, at least, to contradict it."""
PREFERRED = 0.3
"""How much worse a rival may fit that is rather named."""
MOST = 400
"""Rivals that are looked at, at most."""


class Term(NamedTuple):
    """A value, or a word with content, of a claim: its characters and the number of its clause."""

    start: int
    end: int
    clause: int
    stem: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A value of a response, its characters `start` to `end`, that `text`, beside what passages have in its
    slot.

    `rival` are characters of `passage`: those of another value in the slot, or of the value itself where it
    is supported. `features` have a name each; one without a meaning here is not a number. `fits` tells of
    each rival, by its passage and characters there, how well it fits the slot, 0 to 1.
    """

    start: int
    end: int
    text: str
    kind: str
    status: Status
    passage: int | None
    rival: Span | None
    rival_text: str
    features: dict[str, float]
    fits: Mapping[tuple[int, int, int], float]

    def fit(self, passage: int, start: int, end: int) -> float | None:
        """Return how well the rival among these characters of a passage fits the slot; None for none."""
        inside = (
            fit
            for (where, first, last), fit in self.fits.items()
            if where == passage and first < end and start < last
        )
        return max(inside, default=None)


class Presence(NamedTuple):
    """How much of a word or a value each clause has by itself (`exact`), and with what stands around it
    (`spread`), both (clauses,), 0 to 1; and how rare it is."""

    exact: Array
    spread: Array
    rarity: float


class Comparer:
    """The clauses of passages, which claims of responses to a question are compared with."""

    def __init__(self, question: str, index: Index) -> None:
        self.index = index
        self.around = index.places[0].around if index.places else NOTHING
        self.evidence = list(evidence_of(index.places))
        sentences, stems = ([getattr(entry, name) for entry in self.evidence] for name in ("place", "stems"))
        self.lookup = Lookup(index.places, sentences, stems)
        self._shared = np.array([SENTENCE if entry.stems else 1.0 for entry in self.evidence])
        """Weight of a word in a clause's sentence: "and 38 minutes in 2021" shares all words before it."""
        self._leading = Lookup(index.places, sentences, [entry.lead for entry in self.evidence]).standing
        self._families = defaultdict[str, set[str]](set)
        for stem in self.lookup.standing:
            self._families[stem[:_LETTERS]].add(stem)
        self.values = [
            (value, number) for number, entry in enumerate(self.evidence) for value in entry.values
        ]
        self._words: dict[str, Presence] = {}
        self._of_values: dict[tuple[str, str], Presence] = {}
        self._subject_fits: dict[str, Array] = {}
        self.question_stems = [token.stem for token in tokens_of(question) if token.stem]
        self.question_values = find_values(question, self.around)
        self.question_names = tuple(value for value in self.question_values if value.kind == "name")

    def compare(
        self, sentences: Iterable[Place], before: Sequence[Value] = (), last: Subject | None = None
    ) -> list[Slots]:
        """Return the slots of each sentence of a response that has a claim, in their order; `before` are the
        values before these sentences, and `last` is the subject of the clause before."""
        by_sentence = defaultdict[Place, list[Claim]](list)
        for claim in claims_of(sentences, self.question_values, last):
            by_sentence[claim.sentence].append(claim)
        every, slots = list(before), list[Slots]()
        for claims in by_sentence.values() if self.evidence else ():
            every += [value for claim in claims for value in claim.values]
            slots.append(Slots(self, claims, tuple(every)))
        return slots

    def word(self, stem: str) -> Presence:
        """Return how much of a word the clauses have, or of one of its family."""
        if stem not in self._words:
            family = self._families.get(stem[:_LETTERS], ()) if len(stem) >= _LETTERS else ()
            exact = self.lookup.exact(dict.fromkeys(family, FAMILY) | {stem: 1.0})
            spread = self.lookup.spread(exact, self._shared, NEIGHBOUR, PASSAGE)
            if leading := self._leading.get(stem):
                spread = spread.copy()
                spread[leading] = np.maximum(spread[leading], LEAD)
            self._words[stem] = Presence(exact, spread, self._rarity(exact))
        return self._words[stem]

    def value(self, value: Value) -> Presence:
        """Return how much of a value the clauses have. A name also counts where it is the clause's subject;
        where another name is, it counts no more than in the passage."""
        key = value.kind, f"{value.text} {value.precision.bound} {value.noun}"
        if key not in self._of_values:
            exact = self._agreeing(value)
            spread = self.lookup.spread(exact, OTHER_SLOT, NEIGHBOUR, PASSAGE)
            if value.kind == "name" and exact.any():
                has_subject = np.array([bool(entry.subject) for entry in self.evidence], bool)
                is_of_name = self.subject_fits([value]) == 1.0
                is_of_other = has_subject & ~is_of_name & (exact == 0)
                spread = np.where(is_of_name, np.maximum(spread, OF_NAME), spread)
                spread = np.where(is_of_other, np.minimum(spread, OF_OTHER), spread)
            self._of_values[key] = Presence(exact, spread, self._rarity(exact))
        return self._of_values[key]

    def _agreeing(self, value: Value) -> Array:
        """Return which clauses have a value that agrees: (clauses,)."""
        agreeing = np.zeros(len(self.evidence))
        for candidate, number in self.values:
            if agree(value, candidate):
                agreeing[number] = 1.0
            elif not agreeing[number] and _same_number(value, candidate):
                agreeing[number] = BARE
        stems = () if value.kind != "name" or agreeing.any() else stems_of(value.text)
        if stems:  # "Riverside" in a sentence's first place
            agreeing = np.floor(np.minimum.reduce([self.word(stem).exact for stem in stems]))
        return agreeing

    def _rarity(self, exact: Array) -> float:
        return self.lookup.idf(self.lookup.having(exact > 0)) + _LEAST

    @cached_property
    def question_scores(self) -> Array:
        """How much of the question's words each passage has, as a share of the best: (passages,)."""
        scores = np.zeros(self.passages)
        for stem in self.question_stems:
            exact, _, rarity = self.word(stem)
            if exact.any():
                scores += rarity * self.by_passage(exact)
        return np.asarray(scores / max(float(scores.max(initial=0.0)), 1e-9))

    @property
    def passages(self) -> int:
        """The number of passages, up to the last one with a clause."""
        return int(self.lookup.passages[-1]) + 1 if len(self.evidence) else 0

    def by_passage(self, scores: Array) -> Array:
        """Return the highest score of the clauses of each passage: (passages,)."""
        best = np.zeros(self.passages)
        np.maximum.at(best, self.lookup.passages, scores)
        return best

    def subject_fits(self, names: Sequence[Value]) -> Array:
        """Return 1 for clauses whose subject is among some names, half where only their passage is about one:
        (clauses,)."""
        fits = np.zeros(len(self.evidence))
        for name in names:
            if name.text not in self._subject_fits:
                each_fit = [_fit_of_names([name], entry) for entry in self.evidence]
                self._subject_fits[name.text] = np.array(each_fit)
            fits = np.maximum(fits, self._subject_fits[name.text])
        return fits


class Slots:
    """The terms of a sentence's claims, and how well the clauses of passages fit the slot of each; `every`
    are the values of the response so far."""

    def __init__(self, comparer: Comparer, claims: Sequence[Claim], every: Sequence[Value]) -> None:
        self.comparer, self.claims, self.every = comparer, claims, every
        self.sentence = claims[0].sentence
        terms = [
            Term(value.start, value.end, k, "", value)
            for k, claim in enumerate(claims)
            for value in claim.values
        ]
        terms += [
            Term(token.start, token.end, k, token.stem, None)
            for k, claim in enumerate(claims)
            for token in claim.tokens
        ]
        self.terms = sorted(terms, key=lambda term: term.start)
        present = [
            comparer.word(term.stem) if term.value is None else comparer.value(term.value)
            for term in self.terms
        ]
        shape = len(self.terms), len(comparer.evidence)
        self.exact = np.array([presence.exact for presence in present]).reshape(shape)
        self.presences = np.array([presence.spread for presence in present]).reshape(shape)
        self.rarities = np.array([presence.rarity for presence in present])
        self.in_passages = np.asarray(self.exact.any(1))
        self.context, self.context_weight = self._context()

    def _context(self) -> tuple[Array, float]:
        """Return how much clauses have of the subject that stands before and of the question's words, and
        the weight of these."""
        comparer = self.comparer
        total, scores = 0.0, np.zeros(len(comparer.evidence))
        subject = self.claims[0].subject
        names = subject.names if subject.origin in ("before", "question") else ()
        inside = {term.stem for term in self.terms}
        weighted = [(SUBJECT, comparer.value(name)) for name in names]
        weighted += [(ASKED, comparer.word(stem)) for stem in comparer.question_stems if stem not in inside]
        for weight, presence in weighted:
            if presence.exact.any():
                total += weight * presence.rarity
                scores += weight * presence.rarity * presence.spread
        return scores, total

    def _fits(self, kernel: Array) -> Array:
        """Return how well clauses fit the slot of each term: (terms, clauses), 0 to 1. `kernel` (terms,
        terms) tells how much a term describes the slot of another."""
        weights = kernel * (self.rarities * self.in_passages)[None, :]
        totals = weights.sum(1, keepdims=True) + self.context_weight + 1e-9
        return np.asarray((weights @ self.presences + self.context[None, :]) / totals)

    @cached_property
    def _kernels(self) -> tuple[Array, Array]:
        positions = np.arange(len(self.terms))
        numbers = np.array([term.clause for term in self.terms])
        same = np.where(numbers[:, None] == numbers[None, :], 1.0, OTHER_CLAUSE)
        distinct = 1.0 - np.eye(len(self.terms))
        near = np.exp(-np.abs(positions[:, None] - positions[None, :]) / REACH)
        return near * same * distinct, same * distinct

    @cached_property
    def near(self) -> Array:
        """How well clauses fit the slot that the words beside a term describe: (terms, clauses)."""
        return self._fits(self._kernels[0])

    @cached_property
    def around(self) -> Array:
        """How well they fit the slot that its clause and sentence describe: (terms, clauses)."""
        return self._fits(self._kernels[1])

    @cached_property
    def wide(self) -> Array:
        """How much of the sentence clauses say: (clauses,)."""
        if not self.terms:
            return np.zeros(len(self.comparer.evidence))
        return np.asarray(self._fits(np.ones((1, len(self.terms))))[0])

    def comparisons(self) -> list[Comparison]:
        """Return what the passages say of each value of the sentence."""
        return [
            self._compared(k, term, term.value) for k, term in enumerate(self.terms) if term.value is not None
        ]

    def _compared(self, k: int, term: Term, value: Value) -> Comparison:
        comparer = self.comparer
        agreeing = self.exact[k] > 0
        rivals = self._rivals(value, agreeing)
        home = int(np.argmax(self.around[k]))
        features = {
            "known": float(self.in_passages[k]),
            "agreeing": float(agreeing.sum()),
            "rivals": float(len(rivals)),
            "asked": float(any(agree(value, candidate) for candidate in comparer.question_values)),
            "written in digits": float(any(sign.isdigit() for sign in value.text)),
            "small": float(value.kind == "quantity" and not value.unit and abs(value.amount) <= 4),
            "has unit": float(bool(value.unit)),
            "repeated": float(sum(agree(value, candidate) for candidate in self.every) - 1),
            "rarity": float(self.rarities[k]),
            "words known": float(self._share_known(k)),
            "first": float(k == 0),
            "last": float(k == len(self.terms) - 1),
            "values": float(sum(entry.value is not None for entry in self.terms)),
            "at home": float(agreeing[home]),
            "in home sentence": float(
                agreeing[comparer.lookup.sentences == comparer.lookup.sentences[home]].any()
            ),
            "in home passage": float(
                agreeing[comparer.lookup.passages == comparer.lookup.passages[home]].any()
            ),
        }
        best: dict[str, int] = {}
        for name, fits in (("near", self.near[k]), ("around", self.around[k])):
            best_match = int(np.argmax(np.where(agreeing, fits, -1.0)))
            fit = float(fits[best_match]) if agreeing[best_match] else 0.0
            best[name] = best_match
            numbers = [number for _, number in rivals]
            best_rival = max(range(len(rivals)), key=lambda j: fits[numbers[j]], default=None)
            against = float(fits[numbers[best_rival]]) if best_rival is not None else 0.0
            features |= {
                f"{name} fit": fit,
                f"{name} rival": against,
                f"{name} gap": against - fit,
                f"{name} home": float(fits.max()),
                f"{name} behind": float(fits.max()) - fit,
                f"{name} rank": float((fits > fit + 1e-9).sum()),
            }
            if name == "near":
                rival = rivals[best_rival] if best_rival is not None else None
        best_match = best["near"]
        features |= self._of_rivals(value, rivals, k)
        features |= self._together(k, best_match if agreeing.any() else None, rival)
        features |= self._subject_of("own", k, comparer.evidence[best_match] if agreeing.any() else None)
        features |= self._subject_of("rival", k, comparer.evidence[rival[1]] if rival else None)
        is_computed = self._computed(value) if not agreeing.any() else False
        features["computed"] = float(is_computed)
        shown = self._shown(value, rivals, k) if rival else None
        fits = dict[tuple[int, int, int], float]()
        for entry, number in rivals:
            key = comparer.evidence[number].passage, entry.start, entry.end
            fits[key] = max(float(self.near[k][number]), fits.get(key, 0.0))
        return self._decided(term, value, features, best_match if agreeing.any() else None, shown, fits)

    def _rivals(self, value: Value, agreeing: NDArray[np.bool_]) -> list[tuple[Value, int]]:
        """Return the values that could stand in the place of one, from clauses that do not have it too."""
        rivals = []
        for candidate, number in self.comparer.values:  # of one value, a clause with it has no rival
            if not agreeing[number] and comparable(value, candidate):
                if value.kind == "name" and (value.unit == "code") != (candidate.unit == "code"):
                    continue
                rivals.append((candidate, number))
                if len(rivals) == MOST:
                    break
        return rivals

    def _of_rivals(self, value: Value, rivals: Sequence[tuple[Value, int]], k: int) -> dict[str, float]:
        """Return how well the rivals fit that the response does not have, and those with the value's noun and
        unit."""
        near = self.near[k]
        unused, alike, narrow = 0.0, 0.0, 0.0
        for rival, number in rivals:
            fit = float(near[number])
            free, same = self._is_free(rival), _are_alike(value, rival)
            unused = max(unused, fit if free else 0.0)
            alike = max(alike, fit if same else 0.0)
            narrow = max(narrow, fit if same and free else 0.0)
        agreeing = self.exact[k] > 0
        best_fit = float(near[agreeing].max()) if agreeing.any() else 0.0
        return {
            "unused rival": unused - best_fit,
            "alike rival": alike - best_fit,
            "unused alike rival": narrow - best_fit,
            "unused alike": narrow,
        }

    def _shown(self, value: Value, rivals: Sequence[tuple[Value, int]], k: int) -> tuple[Value, int]:
        """Return the rival that a person would name: rather one that the response does not say elsewhere, of
        the same unit and noun, of a name one that shares a word ("Gull Island" for "Seal Island"), and above
        all one of the same number ("6 days" for "6 weeks")."""

        def likeness(rival: tuple[Value, int]) -> float:
            candidate, number = rival
            shared = value.kind == "name" and bool(set(value.key) & set(candidate.key))
            preferred = self._is_free(candidate) + 0.5 * _are_alike(value, candidate) + 0.5 * shared
            preferred += 1.5 * have_same_numbers(value.text, candidate.text)
            return float(self.near[k][number]) + PREFERRED * preferred

        return max(rivals, key=likeness)

    def _is_free(self, value: Value) -> bool:
        """Say whether the response has a value nowhere."""
        return not any(comparable(value, entry) and agree(entry, value) for entry in self.every)

    def _together(self, k: int, match: int | None, rival: tuple[Value, int] | None) -> dict[str, float]:
        """Return the share of the sentence's other values that stand in the sentence, and in the passage, of
        the best `match` and of the `rival`."""
        comparer = self.comparer
        masks = [
            self.exact[j] > 0
            for j, term in enumerate(self.terms)
            if term.value is not None and j != k and self.in_passages[j]
        ]
        features: dict[str, float] = {}
        for name, number in (("own", match), ("rival", rival[1] if rival else None)):
            share = passage = math.nan
            if number is not None and masks:
                sentence = comparer.lookup.sentences == comparer.lookup.sentences[number]
                of_passage = comparer.lookup.passages == comparer.lookup.passages[number]
                share = sum(bool(mask[sentence].any()) for mask in masks) / len(masks)
                passage = sum(bool(mask[of_passage].any()) for mask in masks) / len(masks)
            features |= {f"together {name}": share, f"together in passage {name}": passage}
        return features

    def _subject_of(self, name: str, k: int, entry: Evidence | None) -> dict[str, float]:
        """Return whether a clause has the subject of a term's claim, and that of the question; the features'
        names end with `name`."""
        claim = self.claims[self.terms[k].clause]
        names = tuple(value for value in claim.subject.names if value != self.terms[k].value)
        question_names = self.comparer.question_names
        if entry is None:
            return dict.fromkeys(
                (f"{feature} {name}" for feature in ("subject", "sibling", "asked", "away")), math.nan
            )
        subject = entry.subject
        return {
            f"subject {name}": _fit_of_names(names, entry),
            f"sibling {name}": float(are_siblings(names or question_names, subject or entry.about)),
            f"asked {name}": _fit_of_names(question_names, entry),
            f"away {name}": float(bool(names and subject) and not share_name(names, subject)),
        }

    def _share_known(self, k: int) -> float:
        kernel = self._kernels[0][k]
        return float((kernel * self.in_passages).sum() / max(kernel.sum(), 1e-9))

    def _computed(self, value: Value) -> bool:
        index, sentence = self.comparer.index, self.sentence
        similarities = index.similarities(sentence.words) if sentence.words else [0.0] * len(index.places)
        moved = value.shifted(-sentence.start)
        return computed(moved, sentence.text, index.texts, index, similarities) is not None

    def _decided(
        self,
        term: Term,
        value: Value,
        features: dict[str, float],
        best: int | None,
        rival: tuple[Value, int] | None,
        fits: Mapping[tuple[int, int, int], float],
    ) -> Comparison:
        status: Status = "supported" if best is not None else "unsupported"
        entry, span, text = None, None, ""
        if features["computed"]:
            status = "computed"
        elif rival and features["near rival"] >= FITS and features["near gap"] >= APART:
            status = "contradicted"
            entry, span, text = (
                self.comparer.evidence[rival[1]],
                (rival[0].start, rival[0].end),
                rival[0].text,
            )
        elif best is not None:
            entry = self.comparer.evidence[best]
            match = next((candidate for candidate in entry.values if agree(value, candidate)), None)
            span = (match.start, match.end) if match else (entry.start, entry.end)
            text = match.text if match else entry.text
        passage = entry.passage if entry else None
        return Comparison(
            term.start,
            term.end,
            value.text,
            value.kind,
            status,
            passage,
            rival=span,
            rival_text=text,
            features=features,
            fits=fits,
        )

    @cached_property
    def _behind(self) -> Array:
        """How much better clauses without a term fit its slot than those that have it: (terms,)."""
        return np.asarray(self.near.max(1) - (self.near * (self.exact > 0)).max(1))

    def clauses(self) -> dict[str, float]:
        """Return how many of the sentence's words the passages lack, how far the words stand from their
        slots, and how far apart the clauses' best places are."""
        plain = np.array([term.value is None for term in self.terms], bool)
        present = plain & self.in_passages
        near = np.sort(self._behind[present])[::-1] if len(self.terms) else np.zeros(0)
        weights = self.rarities * plain
        numbers = np.array([term.clause for term in self.terms])
        gaps = []
        for number in set(numbers.tolist()):
            inside = (numbers == number) & self.in_passages
            rest = (numbers != number) & self.in_passages
            if inside.any() and rest.any():
                here, there = (self._fits(chosen[None, :].astype(float))[0] for chosen in (inside, rest))
                gaps.append(float(here.max() - here[int(np.argmax(there))]))
        return {
            "words": float(plain.sum()),
            "words missing": float((weights * ~self.in_passages).sum() / max(float(weights.sum()), 1e-9)),
            "words behind": float(near[0]) if len(near) else 0.0,
            "words behind, second": float(near[1]) if len(near) > 1 else 0.0,
            "words behind, mean": float(near.mean()) if len(near) else 0.0,
            "clauses": float(len(self.claims)),
            "clauses apart": max(gaps, default=0.0),
        }

    def subject(self, earlier: Sequence[Array] = ()) -> dict[str, float]:
        """Return of what the passages say the sentence: whether that is the claim's subject and what the
        question asks for, and whether the sentences before, by the `passages` of each (`earlier`), rest on
        the same passage."""
        comparer = self.comparer
        scores = self.wide
        best = int(np.argmax(scores))
        entry = comparer.evidence[best]
        names = tuple({id(name): name for claim in self.claims for name in claim.subject.names}.values())
        question_names, passages = comparer.question_names, comparer.by_passage(scores)
        fits, question_fits = comparer.subject_fits(names), comparer.subject_fits(question_names)
        bare = self._bare
        home = int(np.argmax(bare)) if len(bare) else 0
        home_entry = comparer.evidence[home]
        question = comparer.question_scores
        share = np.mean(earlier, axis=0) if earlier else question
        at_best, at_home = comparer.lookup.passages[best], comparer.lookup.passages[home]
        features = {
            "best": float(scores[best]),
            "best elsewhere": float(np.delete(passages, at_best).max()) if len(passages) > 1 else 0.0,
            "bare best": float(bare[home]),
            "names": float(len(names)),
            "names unknown": float(sum(not comparer.value(name).exact.any() for name in names)),
            "subject at best": _fit_of_names(names, entry),
            "subject at home": float(fits[home]),
            "asked at best": _fit_of_names(question_names, entry),
            "asked at home": float(question_fits[home]),
            "home of subject behind": float(bare.max() - (bare * (fits > 0.5)).max()),
            "home of asked behind": float(bare.max() - (bare * (question_fits > 0.5)).max()),
            "any of subject": float((fits > 0.5).mean()),
            "any of asked": float((question_fits > 0.5).mean()),
            "siblings": float(are_siblings(names or question_names, home_entry.subject)),
            "siblings about": float(are_siblings(names or question_names, home_entry.about)),
            "away": float(bool(names and home_entry.subject) and not share_name(names, home_entry.subject)),
            "question at best": float(question[at_best]),
            "question at home": float(question[at_home]),
            "question behind": float(question.max() - question[at_home]),
            "rest at best": float(share[at_best]),
            "rest at home": float(share[at_home]),
            "rest behind": float(share.max() - share[at_home]),
            "origin question": float(self.claims[0].subject.origin == "question"),
            "origin before": float(self.claims[0].subject.origin == "before"),
        }
        mine = tuple(value for value in self.every if value.kind == "name") + names + question_names
        left_out = [name for name in names_in(home_entry.values) if not share_name([name], mine)]
        features["names of home left out"] = float(len(left_out))
        is_unknown = bool(home_entry.subject) and not share_name(home_entry.subject, mine)
        features["subject of home is unknown"] = float(is_unknown)
        return features

    @property
    def home(self) -> Evidence | None:
        """The clause of the passages that says most of the sentence, without its subject and the question."""
        return self.comparer.evidence[int(np.argmax(self._bare))] if self.comparer.evidence else None

    @cached_property
    def _bare(self) -> Array:
        """How much of the sentence clauses say, without its subject and the question: (clauses,)."""
        is_name = (term.value is not None and term.value.kind == "name" for term in self.terms)
        keep = ~np.array([*is_name], bool)
        if not len(keep):
            return np.zeros(len(self.comparer.evidence))
        weights = self.rarities * self.in_passages * (keep if (keep & self.in_passages).any() else 1)
        return np.asarray(weights @ self.presences / (weights.sum() + 1e-9))

    @cached_property
    def passages(self) -> Array:
        """How much of the sentence each passage says, as a share of the best: (passages,)."""
        scores = self.comparer.by_passage(self.wide)
        return np.asarray(scores / max(float(scores.max()), 1e-9))


def _fit_of_names(names: Sequence[Value], entry: Evidence) -> float:
    """Return 1 where the subject of a clause is among some names, half where its passage is about one."""
    if share_name(names, entry.subject):
        return 1.0
    return 0.5 if share_name(names, entry.about) else 0.0


def _same_number(first: Value, second: Value) -> bool:
    """Say whether two quantities have the same number, and only one of them a unit."""
    if first.kind != "quantity" or second.kind != "quantity" or bool(first.unit) == bool(second.unit):
        return False
    is_bare = "" in (first.unit + first.noun, second.unit + second.noun)
    return is_bare and number_of(first) == number_of(second)


def _are_alike(first: Value, second: Value) -> bool:
    """Say whether values have the same unit and noun, and names as many words."""
    same = second.unit == first.unit and _last_noun(second) == _last_noun(first)
    return same and (first.kind != "name" or len(first.key) == len(second.key))


def have_same_numbers(first: str, second: str) -> bool:
    """Say whether two texts have numbers, and the same ones; "three and a half" is not "three"."""
    halves = len(_HALF.findall(first)) == len(_HALF.findall(second))
    return halves and bool(numbers := numbers_in(first)) and numbers == numbers_in(second)


def _last_noun(value: Value) -> list[str]:
    return value.noun.split(" ")[-1:]
