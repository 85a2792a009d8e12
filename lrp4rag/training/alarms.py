"""Learning alarms: the rows of stored responses, and the networks of each kind of fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.alarms import Fault
from lrp4rag.classifiers.calibration import grouped_folds
from lrp4rag.classifiers.decision import Flags, Names, Numbers, Scores
from lrp4rag.classifiers.ensemble import Network, fit_folds
from lrp4rag.example import Label
from lrp4rag.features.rows import Row
from lrp4rag.util.hashes import hash_of, json_hash

WRONG = 4.0
"""How much a wrong row counts where networks learn, beside 1 for a right one: few are wrong."""
FEWEST_SOURCES = 10
"""Sources with a fault of a kind by which an alarm is learned."""
FOLDS = 5


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
        arrays = [self.table, self.owner, self.kinds, self.shares, groups]
        hashes = (hash_of(np.ascontiguousarray(array).tobytes()) for array in arrays)
        return json_hash([self.columns, *hashes])

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
        order = np.argsort([self.columns[name] for name in names])
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
        (np.flatnonzero(np.isin(place, train) & clear), np.flatnonzero(np.isin(place, held_out)))
        for train, held_out in grouped_folds(faulty, groups[chosen], FOLDS, seed)
    ]
    # What is not clear is scored and decides no epoch.
    weights = np.where(wrong, WRONG, 1.0) * np.where(clear, 1.0, 0.0)
    return fit_folds(Network.fit, rows.table[inside], wrong, weights, folds, seed)
