"""Hidden states of response tokens as features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from lrp4rag.features.record import Record
from lrp4rag.util.errors import InputError

STATE_DEPTH = 0.65
"""Layer 19 of 30: where a probe of the passages' part was best on 300 responses (docs/features.md)."""


@dataclass(frozen=True, slots=True)
class StateBlock:
    """The states of a plain pass before each token and at it, after the layer at `depth` (0 to 1).

    `part` and `window` have one value; cards name them.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    part: Literal["around"]
    depth: float = STATE_DEPTH
    window: int = 1

    def __post_init__(self) -> None:
        if self.part != "around" or self.window != 1:
            raise InputError(
                "states of passes in relevance mode are no longer read; train the detector again"
            )
        if not 0 <= self.depth <= 1:
            raise InputError("a state's depth must be 0 to 1")

    def __call__(self, record: Record) -> NDArray[np.float32]:
        """Return (t, 2d); raises `InputError` where the record has no states."""
        states = np.asarray(record.state(self.part)[-1], dtype=np.float32)
        return np.concatenate([states[:-1], states[1:]], axis=1)
