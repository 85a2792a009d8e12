"""What counting words says of a sentence against its context: precision, and perplexity under n-gram models.

Words are in lower case, without stop words, stemmed (arXiv 2411.03920, the engineered features).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from lrp4rag.experiments.systems.extras import extra
from lrp4rag.features.text import words_of

SMOOTHING = 1.0
START = ""  # what stands before a sentence; no word is empty

Words = Sequence[str]


def stems(text: str) -> list[str]:
    """Stop words go first: stems would hide them. Raises `InputError` where the stemmer is not installed."""
    return [_stem(word) for word in words_of(text) if word not in ENGLISH_STOP_WORDS]


@dataclass(frozen=True, slots=True)
class NGrams:
    """Counts in a context: its words, pairs of neighbours within a sentence, and what pairs begin with."""

    words: Counter[str]
    pairs: Counter[tuple[str, str]]
    firsts: Counter[str]

    @classmethod
    def of(cls, sentences: Iterable[Words]) -> NGrams:
        words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for sentence in sentences:
            words.update(sentence)
            pairs.update(pairwise((START, *sentence)))
        firsts: Counter[str] = Counter()
        for (first, _), count in pairs.items():
            firsts[first] += count
        return cls(words, pairs, firsts)

    def precision(self, words: Words) -> float:
        """The share of a sentence's words that the context has, in [0, 1]; 1 for a sentence without words."""
        return sum(word in self.words for word in words) / len(words) if words else 1.0

    def unigram_perplexity(self, words: Words) -> float:
        """exp of the mean of -log p(w), at least 1, and 1 for a sentence without words.

        p(w) = (n(w) + a) / (n + a (V + 1)): n words in the context, V of them distinct, one place for all
        that it does not have, and a = `SMOOTHING`.
        """
        total = self.words.total()
        return _perplexity([self._smoothed(self.words[word], total) for word in words])

    def bigram_perplexity(self, words: Words) -> float:
        """The same with p(w | v) = (n(v, w) + a) / (n(v) + a (V + 1)); the first word follows `START`."""
        pairs = pairwise((START, *words))
        return _perplexity([self._smoothed(self.pairs[pair], self.firsts[pair[0]]) for pair in pairs])

    def _smoothed(self, count: int, total: int) -> float:
        return (count + SMOOTHING) / (total + SMOOTHING * (len(self.words) + 1))


def _perplexity(probabilities: Sequence[float]) -> float:
    return float(np.exp(-np.mean(np.log(probabilities)))) if probabilities else 1.0


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    return extra("snowballstemmer").stemmer("english")
