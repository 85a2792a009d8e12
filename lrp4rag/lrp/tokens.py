"""What propagation is given, and what it refuses: tokens, and weights over them."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from lrp4rag.errors import LRP4RAGError


class Tokens(Protocol):
    """What propagation needs of an encoded example: the token ids of prompt and response."""

    @property
    def prompt_ids(self) -> tuple[int, ...]: ...
    @property
    def response_ids(self) -> tuple[int, ...]: ...


def lengths_of(tokens: Tokens) -> tuple[int, int]:
    """n and t; raises `LRP4RAGError` where there is nothing to attribute to, or to explain."""
    n, t = len(tokens.prompt_ids), len(tokens.response_ids)
    if not n or not t:
        raise LRP4RAGError(f"the {'response' if n else 'prompt'} has no tokens")
    return n, t


def check_weights(weights: Tensor, *widths: int) -> None:
    """Raise `LRP4RAGError` unless `weights` are tangents over one of these numbers of tokens."""
    if weights.ndim != 2 or not len(weights):
        raise LRP4RAGError(f"weights must be (tangents, tokens), got {tuple(weights.shape)}")
    if weights.shape[1] not in widths:
        allowed = " or ".join(str(width) for width in widths)
        raise LRP4RAGError(f"weights must be (any, {allowed}), got {tuple(weights.shape)}")
