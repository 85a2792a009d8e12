"""What an adapter tells: the names of an architecture's norms, attention and gated MLP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from torch import nn


@dataclass(frozen=True, slots=True)
class Block:
    """The parts of one decoder layer that read the primal row, and the linear layers between them."""

    layer: nn.Module
    attention_norm: nn.Module
    attention: nn.Module
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    mlp_norm: nn.Module
    mlp: nn.Module
    gate: nn.Linear
    up: nn.Linear
    down: nn.Linear

    @property
    def linears(self) -> tuple[nn.Linear, ...]:
        return (self.query, self.key, self.value, self.output, self.gate, self.up, self.down)


@dataclass(frozen=True, slots=True)
class Family:
    """Attribute paths, from the model (first group) and from a decoder layer (second group)."""

    name: str
    architectures: tuple[str, ...]
    activations: tuple[str, ...] = ("silu", "swish")

    body: str = "model"
    layers: str = "model.layers"
    final_norm: str = "model.norm"
    rotary: str = "model.rotary_emb"

    attention_norm: str = "input_layernorm"
    attention: str = "self_attn"
    query: str = "self_attn.q_proj"
    key: str = "self_attn.k_proj"
    value: str = "self_attn.v_proj"
    output: str = "self_attn.o_proj"
    mlp_norm: str = "post_attention_layernorm"
    mlp: str = "mlp"
    gate: str = "mlp.gate_proj"
    up: str = "mlp.up_proj"
    down: str = "mlp.down_proj"

    def part(self, model: nn.Module, which: str) -> Any:
        """The model's `body`, `final_norm` or `rotary`."""
        return attrgetter(getattr(self, which))(model)

    def blocks(self, model: nn.Module) -> Iterator[Block]:
        names = [name for name in Block.__dataclass_fields__ if name != "layer"]
        for layer in attrgetter(self.layers)(model):
            yield Block(layer, *(attrgetter(getattr(self, name))(layer) for name in names))
