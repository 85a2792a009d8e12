"""Controls: what a result must beat, from inputs that know nothing of relevance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.features import Features
from lrp4rag.example import Example
from lrp4rag.lrp.relevance import Relevance

Inputs = Callable[[Sequence[Example], Sequence[Relevance], Features], NDArray[np.float64]]


def length(_: Sequence[Example], relevances: Sequence[Relevance], __: Features) -> NDArray[np.float64]:
    """The number of response tokens."""
    return np.array([[len(relevance.response)] for relevance in relevances], dtype=float)


def constant(mode: str) -> Inputs:
    """Relevance 1 for every token, resampled like the real one: what resampling tells of the length."""

    def inputs(
        _: Sequence[Example], relevances: Sequence[Relevance], features: Features
    ) -> NDArray[np.float64]:
        same = replace(features, mode=mode)  # type: ignore[arg-type]
        return same.resampled([np.ones(len(relevance.response)) for relevance in relevances])

    return inputs


def novel_words(examples: Sequence[Example], _: Sequence[Relevance], __: Features) -> NDArray[np.float64]:
    """The number of distinct response words that no passage contains."""
    counts = []
    for example in examples:
        known = set(_words(" ".join(example.passages)))
        counts.append([len(set(_words(example.response or "")) - known)])
    return np.array(counts, dtype=float)


# Each goes through the detector's own classifier, calibration and folds.
CONTROLS: dict[str, Inputs] = {
    "length only": length,
    "constant relevance (interpolate)": constant("interpolate"),
    "constant relevance (zeros)": constant("zeros"),
    "novel words": novel_words,
}

FLAG_EVERYTHING = "flag everything"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
