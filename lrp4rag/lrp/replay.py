"""Run the layers of a patched model over embeddings, with tangents, with or without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.lrp.cache import new_cache
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families import Block, Family
from lrp4rag.lrp.memory import Sizes
from lrp4rag.lrp.rules import NormRule, accumulate
from lrp4rag.lrp.stack import LayerInput, LayerTape, Observer, Stack


@dataclass(frozen=True, slots=True)
class FinalState:
    """What the readout reads at each position: states after the final norm, of B examples.

    Tangents were pushed times a power of two, so that half precision does not lose small ones:
    `scale` (T, B) takes it out again.
    """

    primal: Tensor  # B, n, d
    tangents: Tensor  # T, B, n, d
    scale: Tensor  # T, B

    def at(self, example: int, positions: slice) -> tuple[Tensor, Tensor]:
        """Primal (t, d), and scaled tangents (T, t, d), of one example."""
        return self.primal[example, positions], self.tangents[:, example, positions]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a replay leaves for `pull`."""

    layers: dict[int, LayerTape]  # the rules, where they were kept
    inputs: list[LayerInput] | None  # the layers' inputs, where those were
    final_norm: NormRule


class Replayer:
    """A patched model, its layers' parts, and the stack that its modules share."""

    def __init__(self, model: Any, family: Family, stack: Stack) -> None:
        self.model, self.stack = model, stack
        self.body: Any = family.part(model, "body")
        self.blocks: list[Block] = list(family.blocks(model))
        self.chunkable = not _ROPE_BY_LENGTH & set(_rope_types(model.config))

    def embed(self, ids: Sequence[int]) -> Tensor:
        """Embeddings (tokens, d)."""
        table = self.model.get_input_embeddings()
        embeddings: Tensor = table(torch.tensor(ids, device=table.weight.device, dtype=torch.long))
        return embeddings

    def new_cache(self) -> DynamicCache:
        return new_cache(self.model.config)

    def run(
        self,
        embeddings: Tensor,
        weights: Tensor,
        sizes: Sizes,
        *,
        layer: int = 0,
        cache: DynamicCache | None = None,
        scale: Tensor | None = None,
        composites: Sequence[Composite] | None = None,
        observer: Observer | None = None,
    ) -> FinalState:
        """Push tangents `weights` (T, B, n) times the input of `layer`, for embeddings (B, n, d).

        A cache grows by these positions; `scale` is then that of its tangents. `composites` has one for
        each tangent, where they are not all of the model's own; `observer` sees the layers.
        """
        states, step = [], embeddings.shape[1]
        if self.chunkable:
            step = min(step, sizes.positions or step)
        if step < embeddings.shape[1] and cache is None:
            cache = self.new_cache()
        if scale is None:
            scale = power_of_two(weights.abs().amax(-1))
        scaled = (weights / scale[..., None].to(weights)).to(embeddings)
        try:
            self.stack.start, self.stack.block, self.stack.sums = layer, sizes.queries, []
            self.stack.composites = None if composites is None else tuple(composites)
            self.stack.observer = observer
            if observer is not None:
                observer.start(scale)
            for part, columns in zip(embeddings.split(step, 1), scaled.split(step, 2), strict=True):
                states.append(self._pass(part, columns, cache))
            self.stack.require_finite(len(self.blocks), embeddings.dtype)
        finally:
            self.stack.reset()
        primal = torch.cat([one for one, _ in states], 1) if len(states) > 1 else states[0][0]
        tangents = torch.cat([one for _, one in states], 2) if len(states) > 1 else states[0][1]
        return FinalState(primal, tangents, scale.to(accumulate(primal)))

    def run_and_keep(
        self, embeddings: Tensor, weights: Tensor, sizes: Sizes, *, layer: int = 0
    ) -> tuple[FinalState, Kept]:
        """The same for one example, (n, d) and (T, n), with what `pull` needs."""
        keep_rules = sizes.tape == "rules"
        layers = {k: LayerTape() for k in range(len(self.blocks))} if keep_rules else {}
        inputs = None if keep_rules else [LayerInput() for _ in self.blocks]
        norms: list[NormRule] = []
        self.stack.tapes, self.stack.inputs = layers if keep_rules else None, inputs
        self.stack.keep_final = norms.append
        # Rules must cover all positions at once; inputs are put together again.
        whole = replace(sizes, positions=None) if keep_rules else sizes
        state = self.run(embeddings[None], weights[:, None], whole, layer=layer)
        return state, Kept(layers, inputs, NormRule.joined(norms))

    def rules_of(self, kept: Kept, k: int, queries: int | None) -> LayerTape:
        """The rules of layer k: kept, or computed again from the layer's input."""
        if kept.inputs is None:
            return kept.layers[k]
        hidden, rotary = kept.inputs[k].whole()
        tape = LayerTape()
        try:
            self.stack.tapes, self.stack.block = {k: tape}, queries
            self.blocks[k].layer(hidden, position_embeddings=rotary, attention_mask=None)
        finally:
            self.stack.reset()
        return tape

    def _pass(self, embeddings: Tensor, weights: Tensor, cache: DynamicCache | None) -> tuple[Tensor, Tensor]:
        self.stack.source = lambda hidden: weights[..., None] * hidden
        self.body(inputs_embeds=embeddings, past_key_values=cache, use_cache=cache is not None)
        assert self.stack.final is not None
        return self.stack.final


# Rotary embeddings whose frequencies depend on how much was read: chunks would get others.
_ROPE_BY_LENGTH = {"dynamic", "longrope"}


def _rope_types(config: Any) -> list[str]:
    parameters = getattr(config, "rope_parameters", None) or {}
    # Gemma 3 has one set for each type of layer.
    sets = [one for one in parameters.values() if isinstance(one, dict)] or [parameters]
    return [str(one.get("rope_type", "default")) for one in sets]


def power_of_two(x: Tensor) -> Tensor:
    """The largest power of two up to x, and 1 for 0: dividing by it is exact."""
    x = x if x.is_floating_point() else x.double()
    exponent = torch.frexp(torch.where(x > 0, x, 1)).exponent - 1
    return torch.ldexp(torch.ones_like(x), exponent)


def pad_columns(weights: Tensor, columns: int) -> Tensor:
    return F.pad(weights, (0, columns - weights.shape[-1]))
