"""Hidden states of response tokens as features: whole, or the part of them that came from the passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.record import Record
from lrp4rag.features.units import smoothed
from lrp4rag.util.errors import InputError

STATE_DEPTH = 0.65
"""Layer 19 of 30: where a probe of the passages' part was best on 300 responses (see docs/features.md)."""


def nearest(places: NDArray[np.integer], count: int, depth: float = STATE_DEPTH) -> int:
    """Which of these places in `count` hidden states, embeddings first, is nearest to a depth."""
    return int(np.argmin(np.abs(places - depth * (count - 1))))


@dataclass(frozen=True, slots=True)
class StateBlock:
    """The state at each token's position after the stored layer nearest to `depth` of the reader's (0 to 1),
    averaged over `window` tokens; `part` says of what origin. "around" are the whole states of a plain pass,
    before the token and at it, of the layer that was kept."""

    part: Literal["whole", "passages", "around"]
    depth: float = STATE_DEPTH
    window: int = 1

    def __post_init__(self) -> None:
        if self.part not in ("whole", "passages", "around"):
            raise InputError(f"unknown part of a state '{self.part}'; choose from whole, passages, around")
        if not 0 <= self.depth <= 1 or self.window < 1 or not self.window % 2:
            raise InputError("a state's depth must be 0 to 1 and its window odd and positive")

    def __call__(self, record: Record) -> NDArray[np.float32]:
        """(t, d); raises `InputError` where states were not extracted, or the reader is too shallow."""
        states = record.state(self.part)
        if self.part == "around":
            one = np.asarray(states[-1], dtype=np.float32)
            return np.concatenate([one[:-1], one[1:]], axis=1)
        layers = record.state("layers")
        if not len(layers):
            raise InputError(
                "the reader has too few layers for features of its states (use the block signals)"
            )
        chosen = np.asarray(states[nearest(layers + 1, len(record["hidden_mean"]), self.depth)], np.float32)
        return chosen if self.window == 1 else smoothed(chosen.T, self.window).T.astype(np.float32)

    def columns(self, record: Record) -> list[str]:
        if self.part == "around":
            count = record.state(self.part).shape[-1]
            places = ("before", "at")
            return [f"state {place} {k}" for place in places for k in range(count)]
        words = "state" if self.part == "whole" else "passages' part of the state"
        return [f"{words} {k}" for k in range(record.state(self.part).shape[-1])]
