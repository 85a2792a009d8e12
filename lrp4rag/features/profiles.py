"""Profiles: several numbers of each response token, one for each layer or attention head."""

from __future__ import annotations

import numpy as np

from lrp4rag.features.record import Record, Values
from lrp4rag.features.tokens import TokenFeature

LAYER_STEP = 3
"""Neighbouring layers say nearly the same."""


def lookback(record: Record) -> Values:
    heads = record["lookback"]
    return heads.reshape(-1, heads.shape[-1])


def shares(record: Record) -> Values:
    return _some_layers(record["shares"])


def norms(record: Record) -> Values:
    return np.log1p(_some_layers(record["norms"]))


def _some_layers(profile: Values) -> Values:
    """Every third layer, the last one among them: (l * P, t)."""
    return profile[::-1][::LAYER_STEP][::-1].reshape(-1, profile.shape[-1])


_ALL = (
    TokenFeature(
        "lookback",
        "attention",
        lookback,
        "-",
        "0 to 1",
        "mean attention to a prompt token / that + to a response token, by head",
    ),
    TokenFeature(
        "shares", "provenance", shares, "-", "any", "each origin's share of the state after every third layer"
    ),
    TokenFeature(
        "norms", "provenance", norms, "-", "0 or more", "log(1 + length of each origin's part of that state)"
    ),
)
PROFILES: dict[str, TokenFeature] = {one.name: one for one in _ALL}
