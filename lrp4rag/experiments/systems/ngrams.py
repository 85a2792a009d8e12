"""`NGrams`: a language model of counts, without smoothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = Sequence[str]
START = ""  # comes before each sentence's first word, and is no word


@dataclass(frozen=True, slots=True)
class NGrams:
    """How often runs of `order` words occur, and how often what comes before their last word does."""

    order: int
    runs: Counter[tuple[str, ...]]
    before: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, sentences: Iterable[Words], order: int) -> NGrams:
        runs = Counter(run for words in sentences for run in _runs(words, order))
        before: Counter[tuple[str, ...]] = Counter()
        for run, count in runs.items():
            before[run[:-1]] += count
        return cls(order, runs, before)

    def surprise(self, words: Words) -> NDArray[np.float64]:
        """-log p of each word (words,) of a sentence that was counted, in nats."""
        return np.array([np.log(self.before[run[:-1]] / self.runs[run]) for run in _runs(words, self.order)])


def _runs(words: Words, order: int) -> Iterator[tuple[str, ...]]:
    padded = [START] * (order - 1) + list(words)
    return (tuple(padded[k : k + order]) for k in range(len(words)))
