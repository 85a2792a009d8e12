"""What the sentences of a response state, and which of their values a passage has otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.stating import Stating, stating_of
from lrp4rag.classifiers.contradiction import compared, contradictions
from lrp4rag.classifiers.verdict import Contradiction
from lrp4rag.features.record import Record
from lrp4rag.util.sentences import sentences_in


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """Of the S sentences of a response: what each states, the columns `decision.COMPARED` (S, 4) of its
    values, and the response's contradicted values themselves."""

    stating: tuple[Stating, ...]
    compared: NDArray[np.float64]
    contradictions: tuple[Contradiction, ...]

    @classmethod
    def of(cls, record: Record) -> Statements:
        """Without contradictions where values were not scored."""
        text = record.encoded.response
        sentences = sentences_in(text)
        known = contradictions(record) if "scores" in record.signals else []
        return cls(
            tuple(stating_of(text, sentences)),
            compared(known, sentences),
            tuple(one.contradiction for one in known),
        )
