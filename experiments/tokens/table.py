"""The table that a token classifier reads: a row for each response token, columns by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from experiments.tokens.features import PROFILES, TOKEN_FEATURES
from experiments.tokens.text import TEXT_FEATURES
from lrp4rag.features.record import Record, Values
from lrp4rag.features.units import smoothed
from lrp4rag.util.errors import InputError

Table = NDArray[np.float32]

WINDOWS = (1, 5, 17)
"""Tokens that a feature is averaged over; relevance of a single token is noisy."""
PROFILE_WINDOW = 9
WIDEST = 999

FEATURES = TOKEN_FEATURES | TEXT_FEATURES
"""All that a table may have; by default it has those that a model computes."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Which columns: `features` once for each of `windows`, then the profiles over `profile_window`."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    features: tuple[str, ...] = tuple(TOKEN_FEATURES)
    profiles: tuple[str, ...] = tuple(PROFILES)
    windows: tuple[int, ...] = WINDOWS
    profile_window: int = PROFILE_WINDOW

    def __post_init__(self) -> None:
        for what, given, known in (
            ("token feature", self.features, FEATURES),
            ("profile", self.profiles, PROFILES),
        ):
            for name in given:
                if name not in known:
                    raise InputError(f"unknown {what} '{name}'; choose from {', '.join(known)}")
        if not all(0 < window <= WIDEST and window % 2 for window in (*self.windows, self.profile_window)):
            raise InputError(f"windows must be odd, positive and at most {WIDEST}")

    def __call__(self, record: Record) -> Table:
        """(t, columns)."""
        single = np.array([FEATURES[name](record) for name in self.features]).reshape(-1, len(record))
        blocks = [smoothed(single, window) for window in self.windows]
        blocks += [smoothed(PROFILES[name](record), self.profile_window) for name in self.profiles]
        return np.concatenate(blocks).T.astype(np.float32)

    @property
    def telling(self) -> tuple[str, ...]:
        """Those that can be a verdict's reason."""
        return self.features

    def own_column(self, feature: str) -> int:
        """The number of the column with the values of single tokens."""
        return self.columns_of(feature)[self.windows.index(1)]

    def values(self, record: Record, feature: str) -> Values:
        """Of each token, (t,)."""
        return FEATURES[feature](record)

    def columns_of(self, feature: str) -> list[int]:
        """The numbers of a feature's columns, one for each window."""
        place = self.features.index(feature)
        return [place + k * len(self.features) for k in range(len(self.windows))]

    def columns(self, record: Record) -> list[str]:
        """Their names; profiles have as many as the reader has layers and heads."""
        names = [
            name if window == 1 else f"{name}, {window} tokens"
            for window in self.windows
            for name in self.features
        ]
        for name in self.profiles:
            names += [f"{name} {k}" for k in range(len(PROFILES[name](record)))]
        return names
