"""`Sampler`: which answers a second opinion is asked about; `agreement`: how often detector and judge say the
same, and how much of that is chance."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Chosen = Literal["escalated", "sampled"]

SHORTEST_KEY = 16


def lot(key: bytes, decision: str) -> int:
    """Return a number below 2^64 for the id of a decision, as if drawn at random, and always the same for a
    key."""
    digest = hmac.digest(key, decision.encode(errors="surrogatepass"), hashlib.sha256)
    return int.from_bytes(digest[:8])


@dataclass(frozen=True, slots=True)
class Sampler:
    """All escalated answers, and of the others a `share` between 0 and 1.

    Which ones follows from the id and a secret `key` of at least 16 bytes: so it can be told again later, on
    another machine too, while nobody without the key can tell which answers go unwatched. What is chosen by a
    share is chosen by every larger one. Raises `ValueError` for another share, or a shorter key.
    """

    key: bytes = field(repr=False)
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError("share: give a number from 0 to 1")
        if len(self.key) < SHORTEST_KEY:
            raise ValueError(f"key: give at least {SHORTEST_KEY} random bytes")

    def chosen(self, decision: str, *, escalated: bool) -> Chosen | None:
        """Why a second opinion on the answer with this id of its decision is asked for; None for not at all.

        "sampled" ones stand for all that were not escalated; escalated ones stand for themselves only.
        """
        if escalated:
            return "escalated"
        return "sampled" if lot(self.key, decision) < self.share * 2**64 else None


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
