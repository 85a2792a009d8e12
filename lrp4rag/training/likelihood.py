"""How likely the reader finds the response: one number a row, a mean over its tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrp4rag.training.tabular import Contenders, one_number

if TYPE_CHECKING:
    from lrp4rag.training.rows import Rows


def log_probability(rows: Rows) -> Contenders:
    """The mean log-probability of the response's tokens (nats)."""
    return one_number([float(row.mean()) for row in rows.signal("logprob")], "log-probability")


def entropy(rows: Rows) -> Contenders:
    """The mean entropy of the reader's next-token distributions (nats)."""
    return one_number([float(row.mean()) for row in rows.signal("entropy")], "entropy")


def passage_gain(rows: Rows) -> Contenders:
    """By how much the passages raise the mean log-probability (nats): with them, less without them."""
    pairs = zip(rows.signal("logprob"), rows.signal("logprob_without_passages"), strict=True)
    return one_number([float((row - without).mean()) for row, without in pairs], "gain of the passages")
