"""`NGrams`: counts of runs of words in sentences, and of what comes before their last word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Words = Sequence[str]
START = ""  # comes before each sentence's first word, and is no word


@dataclass(frozen=True, slots=True)
class NGrams:
    """Counts of runs of `order` words, and of the `order` - 1 words that runs begin with."""

    order: int
    runs: Counter[tuple[str, ...]]
    beginnings: Counter[tuple[str, ...]]

    @classmethod
    def of(cls, sentences: Iterable[Words], order: int) -> NGrams:
        runs = Counter(run for words in sentences for run in _runs(words, order))
        beginnings: Counter[tuple[str, ...]] = Counter()
        for run, count in runs.items():
            beginnings[run[:-1]] += count
        return cls(order, runs, beginnings)

    def counts(self, words: Words) -> list[tuple[int, int]]:
        """Of each word of a sentence: how often its run occurs, and how often the run's beginning does."""
        return [(self.runs[run], self.beginnings[run[:-1]]) for run in _runs(words, self.order)]


def _runs(words: Words, order: int) -> Iterator[tuple[str, ...]]:
    padded = [START] * (order - 1) + list(words)
    return (tuple(padded[k : k + order]) for k in range(len(words)))
