"""The values of stored responses, as rows to learn from: which of them a passage has otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.ensemble import Flags, Numbers
from lrp4rag.classifiers.token_model import sentences_of
from lrp4rag.features.record import Record
from lrp4rag.features.values import FEATURES, value_rows

OF_SPAN = 0.3
"""The part of an annotated span that a value must be to be what is wrong with it: in a longer one, words
are."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueRows:
    """V values of R responses: their `table` (V, `FEATURES`), whether they are `wrong` (V,), whether that is
    known (`clear`, (V,): a value inside a longer annotated span may be right), and the numbers of their
    response (`owner`, (V,), which rises) and `sentence` (V,), over all responses."""

    table: NDArray[np.float32]
    wrong: Flags
    clear: Flags
    owner: Numbers
    sentence: Numbers

    @classmethod
    def none(cls) -> ValueRows:
        """No values."""
        flags, numbers = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.intp)
        return cls(np.zeros((0, len(FEATURES)), dtype=np.float32), flags, flags, numbers, numbers)

    @classmethod
    def of(cls, record: Record, flags: Flags, owner: int, sentences: int) -> ValueRows:
        """Compute those of one response, whose flagged tokens (t,) lie in an annotated span; `sentences` is
        the number of its first one over all responses."""
        if not record.has_contrasts:
            return cls.none()
        compared, table = value_rows(record)
        runs = np.cumsum(np.diff(flags, prepend=False) & flags)
        share = np.zeros(len(compared))
        for k, one in enumerate(compared):
            inside = np.arange(one.claim.first, min(one.claim.last, len(flags)))
            annotated = inside[flags[inside]]
            if len(annotated):
                share[k] = len(annotated) / np.count_nonzero(flags & (runs == runs[annotated[0]]))
        return cls(
            table.astype(np.float32),
            share > 0,
            (share == 0) | (share >= OF_SPAN),
            np.full(len(compared), owner),
            sentences + sentences_of(compared, record),
        )

    @classmethod
    def joined(cls, parts: Iterable[ValueRows]) -> ValueRows:
        """Those of all responses."""
        every = [cls.none(), *parts]
        return cls(*(np.concatenate([getattr(part, one.name) for part in every]) for one in fields(cls)))

    def within(self, rows: Numbers) -> Numbers:
        """Number the values of some responses."""
        return np.flatnonzero(np.isin(self.owner, rows))

    def take(self, rows: Numbers) -> ValueRows:
        """Take those of some responses, whose numbers rise."""
        inside = self.within(rows)
        return ValueRows(
            self.table[inside],
            self.wrong[inside],
            self.clear[inside],
            np.searchsorted(rows, self.owner[inside]),
            self.sentence[inside],
        )
