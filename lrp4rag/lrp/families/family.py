"""What an adapter tells: the names of an architecture's norms, attention and gated MLP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

from torch import Tensor, nn

from lrp4rag.lrp.experts import Experts
from lrp4rag.reader.placement import weight_of
from lrp4rag.util.errors import LRP4RAGError


def require_plain(module: Any) -> None:
    """Raise `LRP4RAGError` where the layer's kernel keeps no plain matrix."""
    if not is_plain(module):
        kind = type(module).__name__
        if type(module) is nn.Linear:
            kind += f" with {type(getattr(module, 'weight', None)).__name__} weights"
        raise LRP4RAGError(
            f"relevance cannot be pulled through this model: {kind} gives no derivatives (is it quantised?). "
            "Use push, which needs none: a verdict, R_response and relevance by segment are pushed; "
            "R_prompt, R* and the prompt tokens that a sentence rests on are pulled"
        )


def plain_matrix(module: Any) -> Tensor:
    """Return the layer's weights (out, in); raises as `require_plain` does."""
    require_plain(module)
    matrix: Tensor = weight_of(module)
    return matrix


def is_plain(module: Any) -> bool:
    """Say whether the layer is a linear layer of PyTorch's own, with a floating-point matrix as its
    weight."""
    if type(module).forward is not nn.Linear.forward:
        return False
    weight = module.weight
    return type(weight) in (Tensor, nn.Parameter) and weight.ndim == 2 and weight.is_floating_point()


@dataclass(frozen=True, slots=True)
class Projection:
    """A linear layer, or the rows of a fused one that compute one of its parts."""

    linear: Any
    rows: slice | None = None  # all of them

    @property
    def matrix(self) -> Tensor:
        """Its weights (out, in); raises `LRP4RAGError` where a kernel keeps no plain matrix."""
        weight = plain_matrix(self.linear)
        return weight if self.rows is None else weight[self.rows]


@dataclass(frozen=True, slots=True)
class Block:
    """The parts of one decoder layer that read the primal row, and the linear layers between them."""

    layer: nn.Module
    attention: Any
    mlp: nn.Module
    norms: dict[str, Any]  # by the names of `Family.NORMS`, those that the layer has
    query: Projection
    key: Projection
    value: Projection
    output: Projection
    dense: tuple[Projection, Projection, Projection] | None  # gate, up and down of a dense MLP
    experts: Experts | None  # of a mixture of experts
    rotary: bool  # whether this layer turns queries and keys by their positions

    @property
    def linears(self) -> list[Any]:
        projections = (self.query, self.key, self.value, self.output, *(self.dense or ()))
        return list({id(projection.linear): projection.linear for projection in projections}.values())

    def gate_and_up(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.dense is not None
        gate, up, _ = self.dense
        if gate.linear is not up.linear:
            return gate.linear(x), up.linear(x)
        both = gate.linear(x)
        return both[..., gate.rows], both[..., up.rows]


@dataclass(frozen=True, slots=True)
class Family:
    """Attribute paths, from the model (first group) and from a decoder layer (second group).

    An empty path is a part that the architecture has not.
    """

    name: str
    architectures: tuple[str, ...]

    body: str = "model"
    layers: str = "model.layers"
    final_norm: str = "model.norm"

    attention_norm: str = "input_layernorm"
    attention: str = "self_attn"
    query: str = "self_attn.q_proj"
    key: str = "self_attn.k_proj"
    value: str = "self_attn.v_proj"
    fused_qkv: str = ""  # in place of the three
    query_norm: str = ""
    key_norm: str = ""
    output: str = "self_attn.o_proj"
    attention_after: str = ""  # a norm of what attention adds to the residual
    uses_rotary: str = ""  # a flag on the layer; without one, every layer is rotary
    mlp_norm: str = "post_attention_layernorm"
    mlp: str = "mlp"
    gate: str = "mlp.gate_proj"
    up: str = "mlp.up_proj"
    fused_gate_up: str = ""  # in place of the two
    down: str = "mlp.down_proj"
    mlp_after: str = ""  # a norm of what the MLP adds to the residual
    router: str = ""  # where there are experts
    experts: str = ""

    norm_offset: float = 0.0  # the norm multiplies by offset + weight
    heads_first: bool = False  # query and key norms see (B, heads, n, e) rather than (B, n, heads, e)

    def part(self, model: nn.Module, which: str) -> Any:
        """Return the model's `body` or `final_norm`."""
        return attrgetter(getattr(self, which))(model)

    def blocks(self, model: Any) -> Iterator[Block]:
        config = model.config
        for layer in attrgetter(self.layers)(model):
            query, key, value = self._query_key_value(layer, config)
            experts = self._experts(layer, config)
            norms = {name: getattr(self, name) for name in NORMS if getattr(self, name)}
            yield Block(
                layer=layer,
                attention=attrgetter(self.attention)(layer),
                mlp=attrgetter(self.mlp)(layer),
                norms={name: attrgetter(path)(layer) for name, path in norms.items()},
                query=query,
                key=key,
                value=value,
                output=Projection(attrgetter(self.output)(layer)),
                dense=None if experts else self._dense(layer),
                experts=experts,
                rotary=bool(attrgetter(self.uses_rotary)(layer)) if self.uses_rotary else True,
            )

    def _query_key_value(self, layer: Any, config: Any) -> tuple[Projection, Projection, Projection]:
        if not self.fused_qkv:
            query, key, value = (attrgetter(path)(layer) for path in (self.query, self.key, self.value))
            return Projection(query), Projection(key), Projection(value)
        fused, size = attrgetter(self.fused_qkv)(layer), attrgetter(self.attention)(layer).head_dim
        first = config.num_attention_heads * size
        rows = (0, first, first + config.num_key_value_heads * size, None)
        query, key, value = (Projection(fused, slice(*ends)) for ends in pairwise(rows))
        return query, key, value

    def _dense(self, layer: Any) -> tuple[Projection, Projection, Projection]:
        down = Projection(attrgetter(self.down)(layer))
        if not self.fused_gate_up:
            return Projection(attrgetter(self.gate)(layer)), Projection(attrgetter(self.up)(layer)), down
        fused = attrgetter(self.fused_gate_up)(layer)
        half = fused.out_features // 2
        return Projection(fused, slice(0, half)), Projection(fused, slice(half, None)), down

    def _experts(self, layer: Any, config: Any) -> Experts | None:
        """Return the layer's experts; an architecture with experts may have dense layers too."""
        if not self.experts or not hasattr(attrgetter(self.mlp)(layer), self.experts.rpartition(".")[2]):
            return None
        router = attrgetter(self.router)(layer)
        return Experts(
            router=router,
            experts=attrgetter(self.experts)(layer),
            top=router.top_k,
            normalised=getattr(router, "norm_topk_prob", True),
            activation=activation_of(config),
        )


NORMS = ("attention_norm", "query_norm", "key_norm", "attention_after", "mlp_norm", "mlp_after")


def activation_of(config: Any) -> str:
    """Return the name of the MLP's activation in a Hugging Face configuration."""
    return str(getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", "silu"))
