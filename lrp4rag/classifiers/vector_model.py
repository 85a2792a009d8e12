"""`VectorModel`: relevance resampled to one length, and a calibrated classifier of it (the paper's way)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Card, VectorInput
from lrp4rag.classifiers.features import Features
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.scorers import probabilities
from lrp4rag.classifiers.verdict import Assessment
from lrp4rag.features.record import Record


@dataclass(frozen=True, slots=True, eq=False)
class VectorModel(Model):
    """`learned` are the arrays of `classifier`, a name of `scorers.SCORERS`. Tokens are suspect where
    smoothed relevance is below `token_threshold` (none where it is None)."""

    features: Features
    classifier: str
    learned: Arrays
    token_threshold: float | None

    dtype_matters: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[str, ...]:
        return self.features.needs

    def assess(self, record: Record) -> Assessment:
        (probability,) = self._probabilities(self.features([record.require_relevance()]))
        return Assessment(float(probability), token_threshold=self.token_threshold)

    def arrays(self) -> Arrays:
        return self.learned

    @classmethod
    def load(cls, card: Card, arrays: Arrays) -> Self:
        given = cast(VectorInput, card.input)
        features = Features(given.vector, given.length, given.mode)
        made = cls(features, card.classifier, arrays, given.token_threshold)
        found = made._probabilities(np.zeros((1, *features.shape)))
        if found.shape != (1,) or not np.isfinite(found).all():
            raise ValueError("its probability of a vector is none")
        return made

    def _probabilities(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        return probabilities(self.classifier, self.learned, vectors)
