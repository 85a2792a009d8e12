"""Hidden states of response tokens as features: whole, or the part of them that came from the passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.plain import STATE_DEPTH, StateBlock
from lrp4rag.features.record import Record
from lrp4rag.features.units import smoothed
from lrp4rag.util.errors import InputError


def nearest(places: NDArray[np.integer], count: int, depth: float = STATE_DEPTH) -> int:
    """Which of these places in `count` hidden states, embeddings first, is nearest to a depth."""
    return int(np.argmin(np.abs(places - depth * (count - 1))))


@dataclass(frozen=True, slots=True)
class PartOfState(StateBlock):
    """The state at each token's position after the stored layer nearest to `depth` of the reader's (0 to 1),
    averaged over `window` tokens; `part` says of what origin."""

    part: Literal["whole", "passages"]  # type: ignore[assignment]
    depth: float = STATE_DEPTH
    window: int = 1

    def __post_init__(self) -> None:
        if self.part not in ("whole", "passages"):
            raise InputError(f"unknown part of a state '{self.part}'; choose from whole, passages")
        if not 0 <= self.depth <= 1 or self.window < 1 or not self.window % 2:
            raise InputError("a state's depth must be 0 to 1 and its window odd and positive")

    def __call__(self, record: Record) -> NDArray[np.float32]:
        """(t, d); raises `InputError` where states were not extracted, or the reader is too shallow."""
        states = record.state(self.part)
        layers = record.state("layers")
        if not len(layers):
            raise InputError(
                "the reader has too few layers for features of its states (use the block signals)"
            )
        chosen = np.asarray(states[nearest(layers + 1, len(record["hidden_mean"]), self.depth)], np.float32)
        return chosen if self.window == 1 else smoothed(chosen.T, self.window).T.astype(np.float32)

    def columns(self, record: Record) -> list[str]:
        words = "state" if self.part == "whole" else "passages' part of the state"
        return [f"{words} {k}" for k in range(record.state(self.part).shape[-1])]
