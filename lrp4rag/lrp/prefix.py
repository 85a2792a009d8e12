"""`Prefix`: a prompt's primal and tangent cache, from which several responses, or a stream, go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import DynamicCache

from lrp4rag.errors import LRP4RAGError
from lrp4rag.lrp.cache import fork
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.memory import Sizes
from lrp4rag.lrp.replay import FinalState
from lrp4rag.lrp.stack import Observer

if TYPE_CHECKING:
    from lrp4rag.lrp.propagate import Flow


class Prefix:
    """Tokens that were read already, with T tangents of their embeddings; made by `Flow.prefix`.

    It holds (1 + T) rows of keys and values for each token. Use it inside the flow's mode only.
    """

    _cache: DynamicCache
    _sizes: Sizes
    _scale: Tensor | None

    def __init__(
        self,
        flow: Flow,
        ids: Sequence[int],
        weights: Tensor,
        *,
        composites: Sequence[Composite] | None = None,
        observer: Observer | None = None,
    ) -> None:
        if not ids:
            raise LRP4RAGError("a prefix needs at least one token")
        self._flow, self.tangents, self.length = flow, len(weights), 0
        self._composites = composites
        self.state: FinalState

        def attempt(sizes: Sizes) -> None:
            self._sizes, self._scale = sizes, None
            self._cache, self.length = flow.replayer.new_cache(), 0
            self.extend(ids, weights, observer=observer)

        flow.fitting_prefix(attempt, len(ids), len(weights))

    @torch.no_grad()
    def extend(
        self, ids: Sequence[int], weights: Tensor | None = None, *, observer: Observer | None = None
    ) -> FinalState:
        """Read further tokens, with tangent `weights` (T, tokens), by default none. Returns their states.

        `state` is then that of the last token: what predicts the next one.
        """
        if weights is not None and weights.shape != (self.tangents, len(ids)):
            raise LRP4RAGError(f"weights must be ({self.tangents}, {len(ids)}), got {tuple(weights.shape)}")
        embeddings = self._flow.replayer.embed(ids)
        if weights is None:
            weights = embeddings.new_zeros((self.tangents, len(ids)))
        states = self._flow.replayer.run(
            embeddings[None],
            weights[:, None].to(embeddings.device),
            self._sizes,
            cache=self._cache,
            scale=self._scale,  # one cache, one scale
            composites=self._composites,
            observer=observer,
        )
        self.length += len(ids)
        self._scale = states.scale
        self.state = FinalState(states.primal[:, -1:], states.tangents[:, :, -1:], states.scale)
        return states

    def fork(self) -> Prefix:
        """A prefix that goes on by itself from here; the tokens read so far are shared, not copied."""
        other = object.__new__(Prefix)
        other.__dict__.update(self.__dict__)
        other._cache = fork(self._cache)
        return other

    @torch.no_grad()
    def states(
        self,
        response_ids: Sequence[int],
        weights: Tensor | None = None,
        *,
        observer: Observer | None = None,
    ) -> FinalState:
        """The final states that predict each token of a response that follows; the prefix stays where it is.

        `weights` (T, t - 1) are the tangents' weights of the response's own tokens, by default 0.
        `observer` sees the response's tokens but the last; what predicts the first is the prefix's own.
        """
        if not response_ids:
            raise LRP4RAGError("the response has no tokens")
        states = [self.state]
        if len(response_ids) > 1:
            states.append(self.fork().extend(response_ids[:-1], weights, observer=observer))
        primal = torch.cat([state.primal for state in states], 1)
        tangents = torch.cat([state.tangents for state in states], 2)
        return FinalState(primal, tangents, self.state.scale)

    @torch.no_grad()
    def push(self, response_ids: Sequence[int], weights: Tensor | None = None) -> Tensor:
        """Relevance (T, t), in logits, of a response that follows; `weights` as in `states`."""
        state = self.states(response_ids, weights)
        explained = self._flow.explain(state, 0, slice(None), response_ids)
        return explained.read(state.tangents[:, 0]) * state.scale
