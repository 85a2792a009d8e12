"""Which sentences of two passages may be about the same, by the rarity of the words that they share."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from lrp4rag.claims.statements import Statement

COMMON = 64
"""In how many sentences a word may be to find partners by: what stands in more tells nothing apart."""
PARTNERS = 6
"""How many partners of a sentence are read, those that share most with it."""


def aligned(
    some: Sequence[Statement], share: float, tick: Callable[[], None]
) -> Iterator[tuple[Statement, Statement]]:
    """Pairs of sentences of two passages, the earlier first, in which at least `share` of the words of the
    shorter, by rarity, are the other's too. Linear in the sentences."""
    where: dict[str, list[int]] = defaultdict(list)
    for number, statement in enumerate(some):
        tick()
        for word in statement.stems:
            if word.isalpha():  # numbers are what may differ
                where[word].append(number)
    weights = {word: math.log((len(some) + 1) / (len(at) + 0.5)) + 0.5 for word, at in where.items()}
    totals = [sum(weights.get(word, 0.0) for word in statement.stems) for statement in some]
    for number, statement in enumerate(some):
        tick()
        shared: Counter[int] = Counter()
        for word in sorted(statement.stems):
            if word in where and len(where[word]) <= COMMON:
                for other in where[word]:
                    if other > number and some[other].passage != statement.passage:
                        shared[other] += weights[word]  # type: ignore[assignment]
        for other, weight in shared.most_common(PARTNERS * _passages(shared, some)):
            if weight >= share * min(totals[number], totals[other]):
                yield statement, some[other]


def _passages(shared: Counter[int], some: Sequence[Statement]) -> int:
    return min(len({some[other].passage for other in shared}), 10)
