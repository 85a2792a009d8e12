"""`VectorModel`: relevance resampled to one length, and a calibrated classifier of it (the paper's way)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Card, VectorInput
from lrp4rag.classifiers.model import Arrays, Model
from lrp4rag.classifiers.scorers import probabilities
from lrp4rag.classifiers.vectors import Features
from lrp4rag.classifiers.verdict import Assessment
from lrp4rag.features.record import Record


@dataclass(frozen=True, eq=False)
class VectorModel(Model):
    """`learned` are the arrays of the card's classifier, a name of `scorers.SCORERS`."""

    learned: Arrays

    kind: ClassVar[str] = "vector"
    dtype_matters: ClassVar[bool] = True

    @property
    def input(self) -> VectorInput:
        """Its description in the card."""
        return cast(VectorInput, self.card.input)

    @property
    def features(self) -> Features:
        return Features(self.input.vector, self.input.length, self.input.mode)

    @property
    def needs(self) -> tuple[str, ...]:
        return self.features.needs

    def score(self, record: Record) -> Assessment:
        (probability,) = self._probabilities(self.features([record.require_relevance()]))
        return Assessment(float(probability), token_threshold=self.input.token_threshold)

    def arrays(self) -> Arrays:
        return self.learned

    @classmethod
    def of(cls, card: Card, arrays: Arrays) -> Self:
        model = cls(card, arrays)
        values = model._probabilities(np.zeros((1, *model.features.shape)))
        if values.shape != (1,) or not np.isfinite(values).all():
            raise ValueError("its probability of a vector is invalid")
        return model

    def _probabilities(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        return probabilities(self.card.classifier, self.learned, vectors)
