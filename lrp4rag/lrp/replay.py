"""Run the layers of a patched model over embeddings, with tangents, with or without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.lrp.cache import new_cache
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families.family import Block, Family
from lrp4rag.lrp.memory import Budget, Sizes
from lrp4rag.lrp.readout import Explained, Readout, Target
from lrp4rag.lrp.rules import NormRule, accumulate
from lrp4rag.lrp.stack import LayerInput, LayerTape, Observer, Stack, raise_not_finite
from lrp4rag.reader.placement import cache_option, input_device
from lrp4rag.util.errors import LRP4RAGError


class Tokens(Protocol):
    """What propagation needs of an encoded example: the token ids of prompt and response."""

    @property
    def prompt_ids(self) -> tuple[int, ...]: ...
    @property
    def response_ids(self) -> tuple[int, ...]: ...


def lengths_of(tokens: Tokens) -> tuple[int, int]:
    """Return n and t; raises `LRP4RAGError` where there is nothing to attribute to, or to explain."""
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


@dataclass(frozen=True, slots=True)
class FinalState:
    """States after the final norm, of B examples.

    `scale` (T, B) takes out the power of two by which half precision was kept from losing small tangents.
    """

    primal: Tensor  # B, n, d
    tangents: Tensor  # T, B, n, d
    scale: Tensor  # T, B

    def at(self, example: int, positions: slice) -> tuple[Tensor, Tensor]:
        """Return primal (t, d), and scaled tangents (T, t, d), of one example."""
        return self.primal[example, positions], self.tangents[:, example, positions]


@dataclass(frozen=True, slots=True)
class Tape:
    """One replay, recorded for `pull`: the rules of every layer in `layers`, or else the layers' `inputs`."""

    tokens: Tokens
    embeddings: Tensor  # N, d
    explained: Explained
    final_norm: NormRule
    layers: dict[int, LayerTape]
    inputs: list[LayerInput] | None
    final: Tensor  # t, d: the final states that predict the response's tokens

    def input_of(self, layer: int) -> Tensor:
        """Return the primal input (N, d) of a decoder layer; that of layer 0 are the embeddings."""
        if not layer:
            return self.embeddings
        assert self.inputs is not None
        return self.inputs[layer].joined()[0][0]


class Replayer:
    """A patched model, its parts, the stack that its modules share, and what was explained of it last."""

    def __init__(
        self,
        model: Any,
        family: Family,
        stack: Stack,
        composite: Composite,
        target: Target,
        budget: Budget,
    ) -> None:
        self.model, self.stack, self.budget = model, stack, budget
        self.composite, self.target, self.readout = composite, target, Readout(model, composite)
        self.body: Any = family.part(model, "body")
        self.blocks: list[Block] = list(family.blocks(model))
        self.chunkable = not _ROPE_BY_LENGTH & set(_rope_types(model.config))
        self.explained: Explained | None = None

    def embed_all(self, tokens: Tokens) -> Tensor:
        """Return embeddings (N, d) of prompt and response, without the last token: it predicts nothing
        explained."""
        return self.embed((*tokens.prompt_ids, *tokens.response_ids[:-1]))

    def embed(self, ids: Sequence[int]) -> Tensor:
        """Return embeddings (tokens, d)."""
        tokens = torch.tensor(ids, device=input_device(self.model), dtype=torch.long)
        embeddings: Tensor = self.model.get_input_embeddings()(tokens)
        return embeddings

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

        A cache grows by these positions; `scale` is then that of its tangents, and `composites` are theirs.
        """
        states, step = [], embeddings.shape[1]
        if self.chunkable:
            step = min(step, sizes.positions or step)
        if step < embeddings.shape[1] and cache is None:
            cache = new_cache(self.model.config)
        if scale is None:
            scale = power_of_two(weights.abs().amax(-1))
        scaled = (weights / scale[..., None].to(weights)).to(embeddings)
        try:
            self.stack.start, self.stack.block, self.stack.sums = layer, sizes.queries, []
            self.stack.composites = None if composites is None else tuple(composites)
            self.stack.observer = observer
            if observer is not None:
                observer.start(scale)
            for chunk, columns in zip(embeddings.split(step, 1), scaled.split(step, 2), strict=True):
                self.stack.source = partial(_tangents, columns)
                options = cache_option(self.body.forward, cache)
                self.body(inputs_embeds=chunk, use_cache=cache is not None, **options)
                assert self.stack.final is not None
                states.append(self.stack.final)
            self.stack.require_finite(len(self.blocks), embeddings.dtype)
        finally:
            self.stack.reset()
        primal, tangents = states[0]
        if len(states) > 1:
            primal, tangents = (torch.cat(chunks, -2) for chunks in zip(*states, strict=True))
        return FinalState(primal, tangents, scale.to(accumulate(primal)))

    def record(
        self, tokens: Tokens, weights: Tensor, sizes: Sizes, *, layer: int = 0
    ) -> tuple[FinalState, Tape]:
        """Run over the tokens of one example with tangents (T, N), and return its tape too."""
        embeddings = self.embed_all(tokens)
        keep_rules = sizes.tape == "rules"
        layers = {k: LayerTape() for k in range(len(self.blocks))} if keep_rules else {}
        inputs = None if keep_rules else [LayerInput() for _ in self.blocks]
        norms: list[NormRule] = []
        self.stack.tapes, self.stack.inputs, self.stack.keep_final = layers, inputs, norms.append
        # Rules must cover all positions at once; inputs are put together again.
        sizes = replace(sizes, positions=None) if keep_rules else sizes
        state = self.run(embeddings[None], weights[:, None], sizes, layer=layer)
        positions = slice(len(tokens.prompt_ids) - 1, None)
        explained = self.explain(state, 0, positions, tokens.response_ids)
        norm, final = NormRule.joined(norms), state.primal[0, positions].clone()  # no view of the tangents
        return state, Tape(tokens, embeddings, explained, norm, layers, inputs, final)

    def explain(self, state: FinalState, example: int, positions: slice, ids: Sequence[int]) -> Explained:
        """Explain what the target names at `positions` of an example of a replay."""
        primal = state.primal[example, positions]
        self.explained = self.readout.explain(primal, torch.tensor(ids, device=primal.device), self.target)
        if not torch.isfinite(self.explained.logits).all():
            raise_not_finite("push", len(self.blocks), primal.dtype)
        return self.explained

    def rules_of(self, tape: Tape, k: int, queries: int | None) -> LayerTape:
        """Return the rules of layer k: recorded, or computed again from the layer's input."""
        if tape.inputs is None:
            return tape.layers[k]
        hidden, rotary = tape.inputs[k].joined()
        rules = LayerTape()
        try:
            self.stack.tapes, self.stack.block = {k: rules}, queries
            self.blocks[k].layer(hidden, position_embeddings=rotary, attention_mask=None)
        finally:
            self.stack.reset()
        return rules


# Rotary embeddings whose frequencies depend on how much was read: chunks would get others.
_ROPE_BY_LENGTH = {"dynamic", "longrope"}


def _rope_types(config: Any) -> list[str]:
    parameters = getattr(config, "rope_parameters", None) or {}
    # Gemma 3 has one set for each type of layer.
    sets = [each for each in parameters.values() if isinstance(each, dict)] or [parameters]
    return [str(each.get("rope_type", "default")) for each in sets]


def _tangents(weights: Tensor, hidden: Tensor) -> Tensor:
    """Return (T, B, n, d), for weights (T, B, n) and hidden states (B, n, d)."""
    return weights[..., None].to(hidden.device) * hidden


def power_of_two(x: Tensor) -> Tensor:
    """Return the largest power of two up to x, and 1 for 0: dividing by it is exact."""
    x = x if x.is_floating_point() else x.double()
    exponent = torch.frexp(torch.where(x > 0, x, 1)).exponent - 1
    return torch.ldexp(torch.ones_like(x), exponent)


def pad_columns(weights: Tensor, columns: int) -> Tensor:
    return F.pad(weights, (0, columns - weights.shape[-1]))
