"""Which sentences of two passages may be about the same, by the rarity of the words that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lrp4rag.claims.index import Index
from lrp4rag.claims.places import Place

PARTNERS = 6
"""How many partners of a sentence are read in each passage, those that share most with it."""


def aligned(index: Index, share: float, tick: Callable[[], None]) -> Iterator[tuple[Place, Place]]:
    """Pairs of sentences of two passages, the earlier first, in which at least `share` of the words of
    either, by rarity, are the other's too. Linear in the sentences."""
    pairs = dict[tuple[int, int], None]()
    for number, place in enumerate(index.places):
        tick()
        words = [word for word in place.stems if word.isalpha()]  # numbers are what may differ
        shares = index.shares([] if place.is_heading else words)
        others = [other for other in shares if index.places[other].passage != place.passage]
        best = sorted(others, key=lambda other: (-shares[other], other))[: 10 * PARTNERS]
        for other in best:
            if shares[other] >= share and not index.places[other].is_heading:
                pairs[min(number, other), max(number, other)] = None
    for one, other in sorted(pairs):
        yield index.places[one], index.places[other]
