"""`VectorModel`: relevance resampled to one length, and a calibrated classifier of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.calibration import probability_of
from lrp4rag.classifiers.features import Features
from lrp4rag.classifiers.verdict import Verdict, judge
from lrp4rag.features.record import Record
from lrp4rag.features.replay import RelevanceReplay, Replay
from lrp4rag.lrp.flow import Flow
from lrp4rag.reader.reader import Reader


@dataclass(frozen=True, slots=True, eq=False)
class VectorModel:
    """Tokens are suspect where smoothed relevance is below `token_threshold` (none where it is None)."""

    features: Features
    estimator: Any
    token_threshold: float | None

    @property
    def needs(self) -> tuple[str, ...]:
        return self.features.needs

    def replay(self, reader: Reader, flow: Flow) -> Replay:
        """What reads records for it."""
        return RelevanceReplay(reader, flow, self.needs)

    def probabilities(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """That each response is hallucinated, (rows,)."""
        vectors = self.features([record.relevance for record in records])
        return probability_of(self.estimator, vectors)

    def judge(self, record: Record, threshold: float) -> Verdict:
        return judge(
            record.relevance,
            probability=float(self.probabilities([record])[0]),
            threshold=threshold,
            token_threshold=self.token_threshold,
        )
