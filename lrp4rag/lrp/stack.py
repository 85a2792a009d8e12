"""`Stack`: what the patched modules of one model share while primal and tangent rows run through it.

The stack is [primal, tangent 1, .. tangent T] on the batch axis, (1 + T) x B rows for B examples. It is
built at the input of one decoder layer and taken apart after the final norm, so that everything around
the layers, such as Hugging Face's `generate`, sees its own batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.experts import ExpertsRule
from lrp4rag.lrp.rules import AttentionRule, GateRule, NormRule
from lrp4rag.util.errors import RelevanceError

Rotary = tuple[Tensor, Tensor]
"""Cosines and sines of the rotary embedding, each (1, n, e)."""


@dataclass
class LayerTape:
    """The rules of one decoder layer at the primal activations of one replay, filled by it."""

    norms: dict[str, NormRule] = field(default_factory=dict)
    rotary: Rotary | None = None
    attention: AttentionRule = field(init=False)
    attention_out: Tensor = field(init=False)  # B, kv, group, n, e
    mlp: GateRule | ExpertsRule = field(init=False)


@dataclass
class LayerInput:
    """The primal input of one decoder layer, from which its rules can be computed again."""

    hidden: list[Tensor] = field(default_factory=list)  # chunks of positions, each 1, n, d
    rotary: list[Rotary] = field(default_factory=list)

    def joined(self) -> tuple[Tensor, Rotary]:
        cos, sin = (torch.cat(chunks, dim=1) for chunks in zip(*self.rotary, strict=True))
        return torch.cat(self.hidden, dim=1), (cos, sin)


class Observer(Protocol):
    """Sees the layers of one replay as they are computed."""

    def start(self, scale: Tensor) -> None:
        """See the start before the first layer, and again where a replay is repeated. `scale` (T, B) is the
        tangents'."""

    def layer(self, k: int, primal: Tensor, tangents: Tensor) -> None:
        """See the states after decoder layer k: (B, n, d) and (T, B, n, d), for a chunk of positions."""

    def attention(self, k: int, rows: slice, keys: slice, p: Tensor) -> None:
        """See the probabilities (B, kv, group, rows, keys) of a block of queries of layer k."""


@dataclass
class Stack:
    """The state of one replay. Without `source` every row is primal, as in a plain call."""

    source: Callable[[Tensor], Tensor] | None = None  # hidden (B, n, d) -> tangents (T, B, n, d)
    start: int = 0  # the layer at whose input the tangents are built
    rows: int = 0  # B, once the stack is built
    tapes: dict[int, LayerTape] = field(default_factory=dict)  # of the layers that are recorded
    inputs: list[LayerInput] | None = None
    keep_final: Callable[[NormRule], None] | None = None  # given the final norm's rule
    final: tuple[Tensor, Tensor] | None = None  # after the final norm: (B, n, d) and (T, B, n, d)
    padding: Tensor | None = None  # B, keys; True where nothing is
    block: int | None = None  # queries per block of attention
    composites: tuple[Composite, ...] | None = None  # one for each tangent, where they differ
    observer: Observer | None = None
    sums: list[Tensor] = field(default_factory=list)  # of each layer's output, or it, to find NaN and Inf

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return primal rows (B, ...) and tangents (T, B, ...); T is 0 where all rows are primal."""
        rows = self.rows or len(x)
        return x[:rows], x[rows:].view(len(x) // rows - 1, rows, *x.shape[1:])

    def primal(self, x: Tensor) -> Tensor:
        return x[: self.rows or len(x)]

    def reset(self) -> None:
        """Forget the replay, so that the next call of the model is a plain one."""
        self.__dict__.update(Stack().__dict__)

    def require_finite(self, layers: int, dtype: torch.dtype) -> None:
        """Raise `RelevanceError` naming the first layer whose output held NaN or Inf."""
        # What is not finite stays so in the residual stream: the last layer tells, with one wait for a GPU.
        if all(torch.stack([total.sum() for total in self.sums[layers - 1 :: layers]]).isfinite().tolist()):
            return
        for k, total in enumerate(self.sums):
            if not torch.isfinite(total.sum()):
                raise_not_finite("push", k % layers, dtype)


def raise_not_finite(direction: str, layer: int, dtype: torch.dtype) -> None:
    hint = "; try dtype='float32'" if dtype in (torch.float16, torch.bfloat16) else ""
    name = str(dtype).removeprefix("torch.")
    raise RelevanceError(f"NaN or Inf at layer {layer} during {direction} in {name}{hint}")
