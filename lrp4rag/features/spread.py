"""How relevance is spread over tokens."""

from __future__ import annotations

import numpy as np

from lrp4rag.features.record import Values


def concentration(relevance: Values) -> float:
    """1 less the entropy of the tokens' shares of positive relevance, over log m."""
    shares = positive_shares(relevance)
    if len(shares) < 2:
        return float(len(shares))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return float(np.clip(1 + (shares * logs).sum() / np.log(len(shares)), 0, 1))


def positive_shares(relevance: Values) -> Values:
    """They sum to 1; all alike where no relevance is positive."""
    parts = np.maximum(relevance, 0.0)
    total = parts.sum()
    return parts / total if total > 0 else np.full(len(parts), 1 / max(len(parts), 1))
