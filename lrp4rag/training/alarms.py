"""Learning alarms: the rows of stored responses, the networks of each kind of fault, and their budgets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from lrp4rag.classifiers.alarms import Fault
from lrp4rag.classifiers.calibration import balanced_weights, grouped_folds, logistic_weights
from lrp4rag.classifiers.decision import TINY, AlarmRule, Flags, Names, Numbers, Scores
from lrp4rag.classifiers.ensemble import Network, fit_folds
from lrp4rag.classifiers.operating import ALARMS
from lrp4rag.example import Label
from lrp4rag.features.rows import Row
from lrp4rag.util.hashes import hash_of, json_hash

WRONG = 4.0
"""How much a wrong row counts where networks learn, beside 1 for a right one: few are wrong."""
FEWEST_SOURCES = 10
"""Sources with a fault of a kind by which an alarm is learned."""
FOLDS = 5
STEP = 0.0025
"""Of the faithful responses, by which budgets grow."""
REACHES = (1, 2, 4, 8)
"""Steps by which one budget may grow at once: the first few may find nothing."""
ENOUGH = 1e-6
"""The part of the faults by which more must be found."""
FEWEST = 20
"""Faithful, or faulty, responses of a set by which a rate is known."""
GENTLEST, STEEPEST = 0.5, 4.0
"""Slopes of alarms."""


@dataclass(frozen=True, slots=True, eq=False)
class FaultRows:
    """V rows of R responses (values, or sentences that state something).

    `table` (V, `columns`) are their features, `owner` (V,) the number of each one's response, which rises,
    and `sentence` (V,) of its sentence, over all responses. `kinds` (V,) is that of the label that it
    overlaps most, "" for none, and `shares` (V,) the largest part of a label's text that it is.
    """

    columns: tuple[str, ...]
    table: NDArray[np.float32]
    owner: Numbers
    sentence: Numbers
    kinds: Names
    shares: Scores

    def within(self, rows: Numbers) -> Numbers:
        """Number the rows of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))

    def take(self, rows: Numbers) -> FaultRows:
        """Take those of some responses, whose numbers rise."""
        inside = self.within(rows)
        return replace(
            self,
            table=self.table[inside],
            owner=np.searchsorted(rows, self.owner[inside]),
            sentence=self.sentence[inside],
            kinds=self.kinds[inside],
            shares=self.shares[inside],
        )

    def digest(self, groups: Names) -> str:
        """Hash all that an alarm learns from; `groups` are the sources of the responses."""
        parts = [self.table, self.owner, self.kinds, self.shares, groups]
        return json_hash([self.columns, *(hash_of(np.ascontiguousarray(one).tobytes()) for one in parts)])

    def wrong(self, fault: Fault) -> tuple[Flags, Flags]:
        """Return which rows have a fault, (V,), and of which that is known, (V,): what a label of another
        kind touches is not right either."""
        touched = self.shares > 0
        wrong = touched if fault.kinds is None else np.isin(self.kinds, list(fault.kinds))
        return wrong, ~touched | (wrong & (self.shares >= fault.share))


@dataclass(slots=True)
class RowTable:
    """Gathers rows response by response: few of all features are in one row."""

    columns: dict[str, int] = field(default_factory=dict)
    cells: list[tuple[NDArray[np.intp], NDArray[np.float32]]] = field(default_factory=list)
    places: list[tuple[int, int, str, float]] = field(default_factory=list)

    def add(self, rows: Sequence[Row], owner: int, first: int, labels: Sequence[Label]) -> None:
        """Add those of the response `owner` with its labels; `first` is the number of its first sentence over
        all responses."""
        for row in rows:
            numbers = [self.columns.setdefault(name, len(self.columns)) for name in row.features]
            values = np.array(list(row.features.values()), dtype=np.float32)
            self.cells.append((np.array(numbers, dtype=np.intp), values))
            overlaps = [
                (min(row.end, label.end) - max(row.start, label.start), label)
                for label in labels
                if label.start < row.end and row.start < label.end
            ]
            kind = max(overlaps, key=lambda pair: pair[0])[1].kind if overlaps else ""
            share = max((size / (label.end - label.start) for size, label in overlaps), default=0.0)
            self.places.append((owner, first + row.sentence, kind, share))

    def rows(self) -> FaultRows:
        """Return all of them; columns are sorted by name."""
        names = sorted(self.columns)
        order = np.empty(len(names), dtype=np.intp)
        for number, name in enumerate(names):
            order[self.columns[name]] = number
        table = np.zeros((len(self.cells), len(names)), dtype=np.float32)
        for row, (numbers, values) in zip(table, self.cells, strict=True):
            row[order[numbers]] = values
        owners, sentences, kinds, shares = zip(*self.places, strict=True) if self.places else ((),) * 4
        return FaultRows(
            tuple(names),
            table,
            np.array(owners, dtype=np.intp),
            np.array(sentences, dtype=np.intp),
            np.array(kinds, dtype=np.str_),
            np.array(shares, dtype=np.float64),
        )


def fit_alarm(
    rows: FaultRows, fault: Fault, groups: Names, chosen: Numbers, seed: int = 0
) -> tuple[tuple[Network, ...], Scores]:
    """Fit the networks of an alarm on the rows of the `chosen` responses; return them, and the log odds of
    these rows by networks that did not learn from them. `groups` (R,) are the sources of all responses.

    None are fitted where too few sources have the fault.
    """
    inside = rows.within(chosen)
    wrong, clear = (flags[inside] for flags in rows.wrong(fault))
    owner = rows.owner[inside]
    if len(set(groups[owner[wrong & clear]])) < FEWEST_SOURCES:
        return (), np.zeros(len(inside))
    place = np.searchsorted(chosen, owner)
    # Folds have as many responses with this fault each: of a rare one, some would have none.
    faulty = np.isin(chosen, owner[wrong & clear])
    folds = [
        (np.flatnonzero(np.isin(place, train) & clear), np.flatnonzero(np.isin(place, held)))
        for train, held in grouped_folds(faulty, groups[chosen], FOLDS, seed)
    ]
    # What is not clear is scored and decides no epoch.
    weights = np.where(wrong, WRONG, 1.0) * np.where(clear, 1.0, 0.0)
    return fit_folds(Network.fit, rows.table[inside], wrong, weights, folds, seed)


def choose_alarms(
    words: Scores, alarms: Mapping[str, Scores], labels: Flags, sets: Names, kinds: Names
) -> AlarmRule:
    """Choose how alarms join the claims of R responses.

    `words` (R,) are the highest probability that a claim of a response is unsupported in all, minus infinity
    for a response without claims, and `alarms` the highest log odds of each alarm, minus infinity for none;
    all by models that did not learn from the response. `kinds` (R,) are those of the responses' faults, ""
    for none, by which no frequent kind outweighs a rare one.

    Each alarm, and the words, have a budget: the part of the faithful responses of any set that they alone
    may flag. The words begin with all of it, `ALARMS`; then budgets change one for another as long as more
    faults are found, and all together flag no more of the faithful responses of a set.
    """
    if not alarms:
        return AlarmRule()
    groups = [np.flatnonzero((sets == name) & ~labels) for name in sorted(set(sets))]
    faithful = [rows for rows in groups if len(rows) >= FEWEST] or [np.flatnonzero(~labels)]
    faulty = _groups_of_faults(labels, sets, kinds)
    scores = {"": words, **alarms}
    tails = {name: _tail(score, faithful) for name, score in scores.items()}
    budgets = _shared(tails, faithful, faulty)
    points = {name: _point(scores[name], tails[name], budgets[name]) for name in scores}
    threshold = float(logit(np.clip(points.pop(""), TINY, 1 - TINY)))
    some = np.isfinite(words)
    stated = labels[some]
    weights = balanced_weights(stated, sets[some])
    best: tuple[float, AlarmRule] | None = None
    for slope in (GENTLEST, 1.0, 2.0, STEEPEST):
        chosen = {name: (slope, threshold - slope * point) for name, point in points.items()}
        rule = AlarmRule(chosen)
        stating = {name: alarm[some] for name, alarm in alarms.items()}
        joined = logit(np.clip(rule.joined(words[some], stating), 1e-6, 1 - 1e-6))
        learned, offset = logistic_weights(joined[:, None], stated, 1.0, weights)
        scale = max(float(learned[0]), 0.01), float(offset)
        chances = np.clip(expit(scale[0] * joined + scale[1]), 1e-6, 1 - 1e-6)
        loss = -float(np.average(np.log(np.where(stated, chances, 1 - chances)), weights=weights))
        if best is None or loss < best[0]:
            best = loss, AlarmRule(chosen, scale)
    assert best is not None
    return best[1]


def _groups_of_faults(labels: Flags, sets: Names, kinds: Names) -> list[tuple[Numbers, float]]:
    """Return the faulty responses by set and kind, and what each group weighs: sets weigh alike, and in a
    set its kinds."""
    found = []
    for name in sorted(set(sets)):
        of_set = [np.flatnonzero((sets == name) & labels & (kinds == kind)) for kind in sorted(set(kinds))]
        known = [rows for rows in of_set if len(rows) >= FEWEST]
        found += [(rows, 1 / len(known)) for rows in known]
    return found or [(np.flatnonzero(labels), 1.0)]


def _tail(scores: Scores, faithful: Sequence[Numbers]) -> Scores:
    """Return what part of the faithful responses of a set, of the set with most, reaches each score."""
    tail = np.zeros(len(scores))
    for rows in faithful:
        ordered = np.sort(scores[rows])
        tail = np.maximum(tail, 1 - np.searchsorted(ordered, scores, side="left") / len(rows))
    return np.where(np.isfinite(scores), tail, 1.0)


def _shared(
    tails: Mapping[str, Scores], faithful: Sequence[Numbers], faulty: Sequence[tuple[Numbers, float]]
) -> dict[str, float]:
    """Share the false alarms: return the budget of each score, that of the words under ""."""
    budgets = dict.fromkeys(tails, 0.0) | {"": ALARMS}
    found = _found(_flagged(tails, budgets), faulty)
    while True:
        best = found, budgets
        for changed in _neighbours(budgets):
            flagged = _flagged(tails, changed)
            if all(flagged[rows].mean() <= ALARMS for rows in faithful):
                best = max(best, (_found(flagged, faulty), changed), key=lambda pair: pair[0])
        if best[0] <= found + ENOUGH:
            return budgets
        found, budgets = best


def _neighbours(budgets: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield budgets of which one is higher, and another perhaps lower."""
    for name, up in itertools.product(budgets, REACHES):
        yield {**budgets, name: budgets[name] + up * STEP}
        for other, down in itertools.product(budgets, (*REACHES, 2 * REACHES[-1])):
            if other != name and budgets[other] > 0:
                less = max(budgets[other] - down * STEP, 0.0)
                yield {**budgets, name: budgets[name] + up * STEP, other: less}


def _flagged(tails: Mapping[str, Scores], budgets: Mapping[str, float]) -> Flags:
    flags: Flags = np.any([tail <= budgets[name] for name, tail in tails.items()], axis=0)
    return flags


def _found(flagged: Flags, faulty: Sequence[tuple[Numbers, float]]) -> float:
    return sum(weight * float(flagged[rows].mean()) for rows, weight in faulty)


def _point(scores: Scores, tail: Scores, budget: float) -> float:
    """Return the lowest score that a budget allows; without one, a score that none reaches."""
    allowed = scores[tail <= budget]
    return float(allowed.min() if len(allowed) else scores[np.isfinite(scores)].max(initial=0.0) + 1)
