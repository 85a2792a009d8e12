"""`Suspicion`: scores of a response's parts, tokens or sentences, and the threshold that marks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.reading import best_threshold
from lrp4rag.example import Example
from lrp4rag.experiments.systems.baseline import Suspect
from lrp4rag.reader.encoding import tokens_in


@dataclass(frozen=True, slots=True, eq=False)
class Suspicion:
    """`spans` (P, 2) are characters of the response, `scores` (P,) rise with suspicion."""

    spans: NDArray[np.intp]
    scores: NDArray[np.float64]


NO_PARTS = Suspicion(np.zeros((0, 2), np.intp), np.zeros(0))
"""Of a response that there was nothing to score by."""


def threshold_of(suspicions: Sequence[Suspicion], examples: Sequence[Example]) -> float:
    """The score from which marking a part has the best F1 over all parts of labelled responses."""
    flags = [annotated(one, example) for one, example in zip(suspicions, examples, strict=True)]
    return best_threshold(np.concatenate([one.scores for one in suspicions]), np.concatenate(flags))


def annotated(suspicion: Suspicion, example: Example) -> NDArray[np.bool_]:
    """Which parts share a character with an annotated span, (P,)."""
    spans = [(label.start, label.end) for label in example.labels or ()]
    return tokens_in([(int(start), int(end)) for start, end in suspicion.spans], spans)


def marked(suspicion: Suspicion, threshold: float) -> tuple[Suspect, ...]:
    return tuple(
        Suspect(int(start), int(end), float(score), bool(score >= threshold))
        for (start, end), score in zip(suspicion.spans, suspicion.scores, strict=True)
    )
