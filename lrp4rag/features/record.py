"""`Record`: what the features of one response are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.errors import InputError
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.encoding import Encoded

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """Relevance of t response tokens, and the arrays of their signals, states and sentences by name (see
    `Signals`, `States` and `Sentences`). `generator` names the model that wrote the response, where known."""

    relevance: Relevance
    signals: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    states: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    sentences: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    generator: str | None = None

    def __len__(self) -> int:
        return len(self.relevance.response)

    def __getitem__(self, name: str) -> Values:
        """A signal, in float64; raises `InputError` where it was not extracted."""
        if name not in self.signals:
            raise InputError(f"features need the signal '{name}'; extract it (parts relevance,signals)")
        return np.asarray(self.signals[name], dtype=np.float64)

    def state(self, name: str) -> NDArray[Any]:
        """An array of the tokens' hidden states; raises `InputError` where it was not extracted."""
        if name not in self.states:
            raise InputError(
                f"features need hidden states ('{name}'); extract them (parts relevance,signals,states)"
            )
        return self.states[name]

    @property
    def encoded(self) -> Encoded:
        return self.relevance.encoded

    def passages(self, name: str = "by_segment") -> Values:
        """Relevance of each passage (K, t), in logits, of a signal that has it by segment."""
        return self[name][2:]
