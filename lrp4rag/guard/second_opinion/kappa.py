"""`agreement`: how often detector and judge say the same, and how much of that is chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
_CELLS = ((True, True), (True, False), (False, True), (False, False))

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of detector and judge: `table` counts the answers that both call grounded or not, by what
    (detector, judge) say.

    `share` is the share of answers on which they agree, and `kappa` Cohen's: 1 where they always agree, 0
    where no oftener than chance; None without answers, or where both always say the same. `low` and `high`
    are its 95 % bootstrap interval, which is too narrow where they hardly ever disagree. `unanswered` counts
    the answers on which the judge says nothing, and `unjudged` the others on which the detector says nothing.
    """

    table: dict[tuple[bool, bool], int]
    share: float | None
    kappa: float | None
    low: float | None
    high: float | None
    unanswered: int
    unjudged: int

    @property
    def answers(self) -> int:
        """Return the number of pairs that the figures rest on."""
        return sum(self.table.values())


def agreement(pairs: Iterable[tuple[bool | None, bool | None]], *, seed: int = 0) -> Agreement:
    """Measure the agreement of pairs (detector, judge): whether each finds an answer grounded, None where it
    says nothing.

    Escalated answers are those that the detector doubts: a figure for all other answers needs sampled
    answers."""
    pair_counts = Counter(pairs)
    unanswered = sum(count for (_, judge), count in pair_counts.items() if judge is None)
    table = {cell: pair_counts[cell] for cell in _CELLS}
    counts, total = np.array(list(table.values()), dtype=float), sum(table.values())
    unjudged = pair_counts.total() - unanswered - total
    if not total:
        return Agreement(table, None, None, None, None, unanswered, unjudged)
    share = float((counts[0] + counts[3]) / total)
    kappa = float(_kappa(counts))
    if np.isnan(kappa):
        return Agreement(table, share, None, None, None, unanswered, unjudged)
    # To draw answers with replacement is to draw the counts of the table.
    drawn = _kappa(np.random.default_rng(seed).multinomial(total, counts / total, DRAWS).astype(float))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Agreement(table, share, kappa, float(low), float(high), unanswered, unjudged)


def _kappa(counts: Floats) -> Floats:
    """Return the kappas of tables (..., 4) in the order of `_CELLS`; NaN where chance alone always agrees."""
    both, detector, judge, neither = np.moveaxis(counts, -1, 0)
    total = both + detector + judge + neither
    chance = (both + detector) * (both + judge) + (neither + detector) * (neither + judge)
    most = total**2 - chance
    kappa: Floats = ((both + neither) * total - chance) / np.where(most > 0, most, np.nan)
    return kappa
