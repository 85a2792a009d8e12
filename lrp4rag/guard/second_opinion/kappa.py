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
    """Of answers that both call grounded or not: `table` counts them by what (detector, judge) say.

    `share` is that of the answers on which they agree, and `kappa` Cohen's: 1 where they always do, 0 where
    no oftener than chance; None where there is no answer, or both always say the same one thing. `low` and
    `high` are its 95 % bootstrap interval, which is too narrow where they hardly ever disagree. `unanswered`
    are answers about which the judge does not say, and `unjudged` others, about which the detector does not.
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
        """Pairs that the figures rest on."""
        return sum(self.table.values())


def agreement(pairs: Iterable[tuple[bool | None, bool | None]], *, seed: int = 0) -> Agreement:
    """Of pairs (detector, judge): whether each finds an answer grounded, None where it does not say.

    Escalated answers are those that the detector doubts: take sampled ones for a figure that holds for all
    others.
    """
    found = Counter(pairs)
    unanswered = sum(count for (_, judge), count in found.items() if judge is None)
    table = {cell: found[cell] for cell in _CELLS}
    counts, total = np.array(list(table.values()), dtype=float), sum(table.values())
    unjudged = found.total() - unanswered - total
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
    """Of tables (..., 4), in the order of `_CELLS`; not a number where chance alone agrees always."""
    both, detector, judge, neither = np.moveaxis(counts, -1, 0)
    total = both + detector + judge + neither
    chance = (both + detector) * (both + judge) + (neither + detector) * (neither + judge)
    most = total**2 - chance
    kappa: Floats = ((both + neither) * total - chance) / np.where(most > 0, most, np.nan)
    return kappa
